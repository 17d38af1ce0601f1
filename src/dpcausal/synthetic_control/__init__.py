"""What would have happened without the intervention: synthetic controls from private donors."""
