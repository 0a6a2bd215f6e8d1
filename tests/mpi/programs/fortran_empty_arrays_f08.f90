! Completes and starts arrays of no requests, ten times each, through the mpi_f08 module.
program fortran_empty_arrays_f08
  use mpi_f08
  implicit none
  type(MPI_Request) :: requests(1)
  type(MPI_Status) :: statuses(1)
  integer :: indices(1), at, done, i
  logical :: flag

  call MPI_Init()
  requests(1) = MPI_REQUEST_NULL
  do i = 1, 10
    call MPI_Startall(0, requests)
    call MPI_Waitall(0, requests, statuses)
    call MPI_Waitany(0, requests, at, statuses(1))
    call MPI_Waitsome(0, requests, done, indices, statuses)
    call MPI_Testall(0, requests, flag, statuses)
    call MPI_Testany(0, requests, at, flag, statuses(1))
    call MPI_Testsome(0, requests, done, indices, statuses)
  end do
  call MPI_Finalize()
end program fortran_empty_arrays_f08
