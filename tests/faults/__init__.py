"""Faults that end a job in the middle: what was measured must be there afterwards. `python3 -m
faults` from the folder `tests`."""
