"""Where each rank is at one moment, and who waits for whom."""
