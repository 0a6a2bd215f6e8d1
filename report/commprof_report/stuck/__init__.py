"""What each rank is doing at one time, and which ranks wait for which."""
