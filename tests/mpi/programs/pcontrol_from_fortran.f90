! Switches counting as Fortran does it: without a second argument.
program pcontrol_from_fortran
    use mpi
    implicit none
    integer :: error
    call MPI_INIT(error)
    call MPI_PCONTROL(1)
    call barriers(1)
    call MPI_PCONTROL(0)
    call barriers(10)
    call MPI_PCONTROL(1)
    call barriers(2)
    call MPI_PCONTROL(0)
    call MPI_PCONTROL(0)
    call barriers(20)
    call MPI_FINALIZE(error)

contains

    subroutine barriers(times)
        integer, intent(in) :: times
        integer :: i
        do i = 1, times
            call MPI_BARRIER(MPI_COMM_SELF, error)
        end do
    end subroutine
end program
