"""Which ranks communicate with which: communicators, the purpose of each, and pipelines."""
