"""A job's traffic as a kit, which commprof-replay makes again on any MPI library."""
