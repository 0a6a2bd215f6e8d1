"""Whether two or more groups of runs differ, by how much, and how sure that is."""
