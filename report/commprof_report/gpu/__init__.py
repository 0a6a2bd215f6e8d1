"""The activity of GPUs, and how it overlaps."""
