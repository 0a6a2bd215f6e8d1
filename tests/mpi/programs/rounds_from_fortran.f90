! Rounds of a negotiation as in rounds.c, one of them in place.
program rounds_from_fortran
    use mpi
    implicit none
    integer, parameter :: long = selected_int_kind(18)
    integer(long) :: given(2), came(2)
    integer :: rank, error
    call MPI_INIT(error)
    call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
    given = 0
    given(1) = 7 + 8 * merge(31, 3, rank == 0)
    call MPI_ALLREDUCE(given, came, 2, MPI_INTEGER8, MPI_BAND, MPI_COMM_WORLD, error)
    call MPI_ALLREDUCE(MPI_IN_PLACE, given, 1, MPI_INTEGER8, MPI_BAND, MPI_COMM_WORLD, error)
    call MPI_FINALIZE(error)
end program
