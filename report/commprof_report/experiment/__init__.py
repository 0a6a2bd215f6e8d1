"""Experiments: several arms, run in blocks, in one folder."""
