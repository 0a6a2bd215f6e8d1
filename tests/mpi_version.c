/* Prints what the MPI library says of itself: the first line, or as far as its first comma. */
#include <mpi.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    for (char *tab = version; (tab = strchr(tab, '\t'));)
        *tab = ' ';
    puts(version);
    MPI_Finalize();
    return 0;
}
