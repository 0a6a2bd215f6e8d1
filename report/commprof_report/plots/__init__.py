"""Pictures: each module draws rows on the axes it is given, and nothing else."""
