"""Rows as text, JSON or CSV, the HTML page, and pictures in files."""
