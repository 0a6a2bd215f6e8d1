"""The run in one row."""
