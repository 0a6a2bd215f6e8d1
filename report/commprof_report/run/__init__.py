"""Reads the files of all ranks into one database, finds which files belong together, applies
filters, and aligns clocks."""
