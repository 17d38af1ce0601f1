"""From frames to bounded arrays."""
