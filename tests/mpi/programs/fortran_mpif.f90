program fortran_mpif
  implicit none
  include 'mpif.h'
  include 'fortran_calls.inc'
end program fortran_mpif
