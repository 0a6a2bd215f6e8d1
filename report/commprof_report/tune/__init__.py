"""From the profile of a job to a tuning file of its MPI library that is proven."""
