"""Sums over calls: their number, time, bytes, and peers."""
