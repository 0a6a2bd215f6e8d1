"""What to change, and what that could save."""
