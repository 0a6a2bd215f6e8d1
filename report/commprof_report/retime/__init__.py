"""The recorded calls of all ranks, played again with something changed."""
