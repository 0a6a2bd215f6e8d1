C     The calls of the three Fortran programs, through mpif.h.
      program fortran_mpif
      implicit none
      include 'mpif.h'
      integer rank, other, half, ierror, i
      integer sent(100), arrived(100), requests(2)
      integer statuses(MPI_STATUS_SIZE, 2)
      double precision numbers(10)

      call MPI_INIT(ierror)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
      other = 1 - rank
      sent = rank
      numbers = 1.0d0

      call MPI_BARRIER(MPI_COMM_WORLD, ierror)
      do i = 1, 3
        if (rank .eq. 0) then
          call MPI_SEND(sent, 10, MPI_INTEGER, 1, 1, MPI_COMM_WORLD,
     &                  ierror)
        else
          call MPI_RECV(arrived, 100, MPI_INTEGER, 0, 1,
     &                  MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
        end if
      end do
      call MPI_SENDRECV(sent, 12, MPI_INTEGER, other, 2, arrived, 100,
     &                  MPI_INTEGER, other, 2, MPI_COMM_WORLD,
     &                  MPI_STATUS_IGNORE, ierror)

      call MPI_IRECV(arrived, 100, MPI_INTEGER, other, 3,
     &               MPI_COMM_WORLD, requests(1), ierror)
      call MPI_ISEND(sent, 20, MPI_INTEGER, other, 3, MPI_COMM_WORLD,
     &               requests(2), ierror)
      call MPI_WAITALL(2, requests, MPI_STATUSES_IGNORE, ierror)
      call MPI_IRECV(arrived, 100, MPI_INTEGER, other, 4,
     &               MPI_COMM_WORLD, requests(1), ierror)
      call MPI_ISEND(sent, 21, MPI_INTEGER, other, 4, MPI_COMM_WORLD,
     &               requests(2), ierror)
      call MPI_WAITALL(2, requests, statuses, ierror)

      call MPI_BCAST(numbers, 10, MPI_DOUBLE_PRECISION, 0,
     &               MPI_COMM_WORLD, ierror)
      call MPI_ALLREDUCE(MPI_IN_PLACE, numbers, 5,
     &                   MPI_DOUBLE_PRECISION, MPI_SUM,
     &                   MPI_COMM_WORLD, ierror)
      if (numbers(5) .ne. 2.0d0 .or. numbers(6) .ne. 1.0d0) stop 99
      call MPI_GATHER(sent, 4, MPI_INTEGER, arrived, 4, MPI_INTEGER, 0,
     &                MPI_COMM_WORLD, ierror)

      call MPI_COMM_SPLIT(MPI_COMM_WORLD, 0, -rank, half, ierror)
      call MPI_REDUCE(sent, arrived, 6, MPI_INTEGER, MPI_MAX, 0, half,
     &                ierror)
      call MPI_COMM_FREE(half, ierror)
      call MPI_FINALIZE(ierror)
      end
