program completions_mpif
  implicit none
  include 'mpif.h'
  integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), status(MPI_STATUS_SIZE)
  include 'completions.inc'
end program completions_mpif
