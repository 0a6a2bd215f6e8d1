"""Packages for package managers: built and installed as their users do."""
