program completions_f08
  use mpi_f08
  implicit none
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: statuses(2), status
  include 'completions.inc'
end program completions_f08
