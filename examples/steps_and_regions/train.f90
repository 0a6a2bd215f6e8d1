! The same as train.c in Fortran.
program train
    use mpi
    use commprof_marks
    implicit none
    integer, parameter :: epochs = 2, steps = 20, parameters = 2**18
    real :: gradient(parameters) = 0
    double precision :: loss, losses
    integer :: epoch, i, repeat, error

    call MPI_Init(error)
    do epoch = 1, epochs
        call commprof_mark_region_begin("epoch")
        do i = 1, steps
            call commprof_mark_step()
            do repeat = 1, 4
                gradient = gradient*0.5 + 1.0
            end do
            call commprof_mark_region_begin("average gradients")
            call MPI_Allreduce(MPI_IN_PLACE, gradient, parameters, MPI_REAL, MPI_SUM, MPI_COMM_WORLD, error)
            call commprof_mark_region_end()
        end do
        call commprof_mark_region_begin("evaluate")
        loss = gradient(1)
        call MPI_Allreduce(loss, losses, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
        call MPI_Barrier(MPI_COMM_WORLD, error)
        call commprof_mark_region_end()
        call commprof_mark_region_end()
    end do
    call MPI_Finalize(error)
end program
