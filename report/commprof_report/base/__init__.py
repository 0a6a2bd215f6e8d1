"""Parts that do not depend on a run: errors, formatting of numbers, SQL, members of communicators,
bins of sizes."""
