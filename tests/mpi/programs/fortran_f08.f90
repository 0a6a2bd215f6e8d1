! The calls of fortran_calls.inc through the mpi_f08 module, without ierror.
program fortran_f08
  use mpi_f08
  implicit none
  integer :: rank, other, i
  integer, asynchronous :: sent(100), arrived(100)
  double precision :: numbers(10)
  type(MPI_Comm) :: half
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: statuses(2)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  other = 1 - rank
  sent = rank
  numbers = 1.0d0

  call MPI_Barrier(MPI_COMM_WORLD)
  do i = 1, 3
    if (rank == 0) then
      call MPI_Send(sent, 10, MPI_INTEGER, 1, 1, MPI_COMM_WORLD)
    else
      call MPI_Recv(arrived, 100, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    end if
  end do
  call MPI_Sendrecv(sent, 12, MPI_INTEGER, other, 2, arrived, 100, MPI_INTEGER, other, 2, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE)

  call MPI_Irecv(arrived, 100, MPI_INTEGER, other, 3, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(sent, 20, MPI_INTEGER, other, 3, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  call MPI_Irecv(arrived, 100, MPI_INTEGER, other, 4, MPI_COMM_WORLD, requests(1))
  call MPI_Isend(sent, 21, MPI_INTEGER, other, 4, MPI_COMM_WORLD, requests(2))
  call MPI_Waitall(2, requests, statuses)

  call MPI_Bcast(numbers, 10, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  call MPI_Allreduce(MPI_IN_PLACE, numbers, 5, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (numbers(5) /= 2.0d0 .or. numbers(6) /= 1.0d0) stop 99
  call MPI_Gather(sent, 4, MPI_INTEGER, arrived, 4, MPI_INTEGER, 0, MPI_COMM_WORLD)

  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, half)
  call MPI_Reduce(sent, arrived, 6, MPI_INTEGER, MPI_MAX, 0, half)
  call MPI_Comm_free(half)
  call MPI_Finalize()
end program
