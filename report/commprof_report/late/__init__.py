"""Which part of a collective is waiting, and which rank the others wait for."""
