"""Advice: changes to the program or its settings, and the time that each could save."""
