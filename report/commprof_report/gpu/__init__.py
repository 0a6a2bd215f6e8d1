"""What GPUs did, and how much of it at the same time."""
