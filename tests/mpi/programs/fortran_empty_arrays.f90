! Completes and starts arrays of no requests, ten times each, through the mpi module.
program fortran_empty_arrays
  use mpi
  implicit none
  integer :: requests(1), statuses(MPI_STATUS_SIZE, 1), indices(1), at, done, i, ierror
  logical :: flag

  call MPI_Init(ierror)
  requests = MPI_REQUEST_NULL
  do i = 1, 10
    call MPI_Startall(0, requests, ierror)
    call MPI_Waitall(0, requests, statuses, ierror)
    call MPI_Waitany(0, requests, at, statuses(:, 1), ierror)
    call MPI_Waitsome(0, requests, done, indices, statuses, ierror)
    call MPI_Testall(0, requests, flag, statuses, ierror)
    call MPI_Testany(0, requests, at, flag, statuses(:, 1), ierror)
    call MPI_Testsome(0, requests, done, indices, statuses, ierror)
  end do
  call MPI_Finalize(ierror)
end program fortran_empty_arrays
