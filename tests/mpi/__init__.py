"""Tests under mpirun: real ranks, checked by asking the databases they leave."""
