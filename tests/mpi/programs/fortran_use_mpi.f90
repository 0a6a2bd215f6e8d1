! The calls of the three Fortran programs, through the mpi module.
program fortran_use_mpi
  use mpi
  implicit none
  integer :: rank, other, half, ierror, i
  integer :: sent(100), arrived(100), requests(2), statuses(MPI_STATUS_SIZE, 2)
  double precision :: numbers(10)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  other = 1 - rank
  sent = rank
  numbers = 1.0d0

  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  do i = 1, 3
    if (rank == 0) then
      call MPI_Send(sent, 10, MPI_INTEGER, 1, 1, MPI_COMM_WORLD, ierror)
    else
      call MPI_Recv(arrived, 100, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    end if
  end do
  call MPI_Sendrecv(sent, 12, MPI_INTEGER, other, 2, arrived, 100, MPI_INTEGER, other, 2, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierror)

  call MPI_Irecv(arrived, 100, MPI_INTEGER, other, 3, MPI_COMM_WORLD, requests(1), ierror)
  call MPI_Isend(sent, 20, MPI_INTEGER, other, 3, MPI_COMM_WORLD, requests(2), ierror)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
  call MPI_Irecv(arrived, 100, MPI_INTEGER, other, 4, MPI_COMM_WORLD, requests(1), ierror)
  call MPI_Isend(sent, 21, MPI_INTEGER, other, 4, MPI_COMM_WORLD, requests(2), ierror)
  call MPI_Waitall(2, requests, statuses, ierror)

  call MPI_Bcast(numbers, 10, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierror)
  call MPI_Allreduce(MPI_IN_PLACE, numbers, 5, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (numbers(5) /= 2.0d0 .or. numbers(6) /= 1.0d0) stop 99
  call MPI_Gather(sent, 4, MPI_INTEGER, arrived, 4, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)

  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, half, ierror)
  call MPI_Reduce(sent, arrived, 6, MPI_INTEGER, MPI_MAX, 0, half, ierror)
  call MPI_Comm_free(half, ierror)
  call MPI_Finalize(ierror)
end program
