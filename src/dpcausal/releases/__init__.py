"""What was released and may be asked again, free: noisy numbers with the guarantee under which they left."""
