"""State of each rank at one time, and which ranks wait for which."""
