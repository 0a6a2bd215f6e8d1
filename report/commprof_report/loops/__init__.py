"""Loops in a sequence of calls, and which of them is the step."""
