"""Sums over calls: how many, how long, how many bytes, between whom."""
