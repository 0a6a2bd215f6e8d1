"""What is made for package managers: built and installed as their users do."""
