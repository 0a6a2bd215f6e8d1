program fortran_use_mpi
  use mpi
  implicit none
  include 'fortran_calls.inc'
end program fortran_use_mpi
