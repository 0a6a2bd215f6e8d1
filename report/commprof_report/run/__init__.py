"""The files that ranks left behind, read as one database: which of them belong together, what was chosen, on which time axis."""
