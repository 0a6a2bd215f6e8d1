  ! Ten times each: completion of arrays of no requests, of null ones and of one that is active, with
  ! statuses and without; starts of none; messages and collectives of nothing. completions_c.c makes
  ! the same calls.
  integer :: indices(2), at, done, i, ierror, nothing(1)
  logical :: flag

  call MPI_Init(ierror)
  do i = 1, 10
    requests = MPI_REQUEST_NULL
    call MPI_Startall(0, requests, ierror)
    call MPI_Waitall(0, requests, statuses, ierror)
    call MPI_Waitany(0, requests, at, status, ierror)
    call MPI_Waitsome(0, requests, done, indices, statuses, ierror)
    call MPI_Testall(0, requests, flag, statuses, ierror)
    call MPI_Testany(0, requests, at, flag, status, ierror)
    call MPI_Testsome(0, requests, done, indices, statuses, ierror)

    call MPI_Waitall(0, requests, MPI_STATUSES_IGNORE, ierror)
    call MPI_Waitany(0, requests, at, MPI_STATUS_IGNORE, ierror)
    call MPI_Waitsome(0, requests, done, indices, MPI_STATUSES_IGNORE, ierror)
    call MPI_Testall(0, requests, flag, MPI_STATUSES_IGNORE, ierror)
    call MPI_Testany(0, requests, at, flag, MPI_STATUS_IGNORE, ierror)
    call MPI_Testsome(0, requests, done, indices, MPI_STATUSES_IGNORE, ierror)

    call MPI_Wait(requests(1), status, ierror)
    call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, ierror)
    call MPI_Request_get_status(requests(1), flag, status, ierror)
    call MPI_Request_get_status(requests(1), flag, MPI_STATUS_IGNORE, ierror)
    call MPI_Waitall(2, requests, statuses, ierror)
    call MPI_Waitany(2, requests, at, status, ierror)
    call MPI_Waitsome(2, requests, done, indices, statuses, ierror)
    call MPI_Testall(2, requests, flag, statuses, ierror)
    call MPI_Testany(2, requests, at, flag, status, ierror)
    call MPI_Testsome(2, requests, done, indices, statuses, ierror)

    call MPI_Ibarrier(MPI_COMM_SELF, requests(1), ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    call MPI_Ibarrier(MPI_COMM_SELF, requests(1), ierror)
    call MPI_Waitany(2, requests, at, MPI_STATUS_IGNORE, ierror)
    call MPI_Ibarrier(MPI_COMM_SELF, requests(1), ierror)
    call MPI_Waitsome(2, requests, done, indices, MPI_STATUSES_IGNORE, ierror)

    call MPI_Send(nothing, 0, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, ierror)
    call MPI_Recv(nothing, 0, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call MPI_Bcast(nothing, 0, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    call MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, ierror)
  end do
  call MPI_Finalize(ierror)
