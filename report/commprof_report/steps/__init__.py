"""The steps of a training run: where each one begins and how its time is spent."""
