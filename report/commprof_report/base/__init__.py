"""What knows nothing of a run: errors, numbers as people write them, SQL, members of communicators, bins of sizes."""
