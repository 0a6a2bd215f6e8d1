/* The symbols by which the profiler detects an MPI library's ABI: four shared objects from one
 * file. */
#ifdef STUB_open_mpi
char ompi_mpi_comm_world, ompi_mpi_comm_self, ompi_mpi_comm_null, ompi_request_null,
    ompi_mpi_datatype_null, ompi_mpi_byte;
#endif

#ifdef STUB_mpich
int *MPI_UNWEIGHTED;
#endif

#ifdef STUB_standard /* on top of Open MPI 6, whose own symbols are visible as well */
char ompi_mpi_comm_world;
int PMPI_Abi_get_version(int *major, int *minor)
{
    *major = 1;
    *minor = 0;
    return 0;
}
#endif

int PMPI_Init(int *argc, char ***argv);
int PMPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return 0;
}
