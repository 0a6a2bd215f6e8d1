"""Who communicates with whom: communicators, what each is for, and pipelines."""
