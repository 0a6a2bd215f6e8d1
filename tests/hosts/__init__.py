"""Hosts of their own on one machine, for jobs whose ranks are on different hosts."""
