"""Planted faults, and what the reports say of them: `python3 -m truth` from the folder `tests`;
tests/report/test_plants.py reads recorded runs of them."""
