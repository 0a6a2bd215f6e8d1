"""Planted faults, and what the reports say of them: `python3 -m truth` from the folder `tests`;
tests/mpi/test_plants.py plays each once."""
