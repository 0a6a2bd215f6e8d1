/* files FOLDER: MPI-IO on two ranks, each call with a different size. test_files.py has the
 * expected counts. */
#include "large_counts.h"

#include "check.h"

enum { ROOM = 512, AT = 100 * (int)sizeof(int) };

static int rank, written[ROOM], read_back[ROOM];
static MPI_File file;

static MPI_Offset mine(int place)
{
    return (MPI_Offset)(2 * place + rank) * AT;
}

static void rewind_both_pointers(void)
{
    MPI_File_seek(file, mine(0), MPI_SEEK_SET);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
}

static void write_blocking(void)
{
    MPI_Status status;
    int count;
    MPI_File_write(file, written, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_all(file, written, 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_at(file, mine(1), written, 3, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 3);
    MPI_File_write_at_all(file, mine(2), written, 40, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_shared(file, written, 5, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_ordered(file, written, 6, MPI_INT, MPI_STATUS_IGNORE);
}

static void read_blocking(void)
{
    MPI_Status status;
    int count;
    MPI_File_read(file, read_back, 1, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 1);
    MPI_File_read_all(file, read_back, 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, mine(1), read_back, 3, MPI_INT, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == 3);
    MPI_File_read_at_all(file, mine(2), read_back, 40, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(read_back[39] == 39);
    MPI_File_read_shared(file, read_back, 5, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_ordered(file, read_back, 6, MPI_INT, MPI_STATUS_IGNORE);
}

static void write_nonblocking(void)
{
    MPI_Request requests[5];
    MPI_File_iwrite(file, written, 11, MPI_INT, &requests[0]);
    MPI_File_iwrite_at(file, mine(3), written, 13, MPI_INT, &requests[1]);
    MPI_File_iwrite_shared(file, written, 15, MPI_INT, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_File_iwrite_all(file, written, 12, MPI_INT, &requests[3]);
    MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
    MPI_File_iwrite_at_all(file, mine(4), written, 14, MPI_INT, &requests[4]);
    MPI_Wait(&requests[4], MPI_STATUS_IGNORE);
}

static void read_nonblocking(void)
{
    MPI_Request requests[5];
    MPI_File_iread(file, read_back, 11, MPI_INT, &requests[0]);
    MPI_File_iread_at(file, mine(3), read_back, 13, MPI_INT, &requests[1]);
    MPI_File_iread_shared(file, read_back, 15, MPI_INT, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_File_iread_all(file, read_back, 12, MPI_INT, &requests[3]);
    MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
    MPI_File_iread_at_all(file, mine(4), read_back, 14, MPI_INT, &requests[4]);
    MPI_Wait(&requests[4], MPI_STATUS_IGNORE);
    CHECK(read_back[13] == 13);
}

static void split(void)
{
    MPI_File_write_all_begin(file, written, 21, MPI_INT);
    MPI_File_write_all_end(file, written, MPI_STATUS_IGNORE);
    MPI_File_write_at_all_begin(file, mine(5), written, 22, MPI_INT);
    MPI_File_write_at_all_end(file, written, MPI_STATUS_IGNORE);
    MPI_File_write_ordered_begin(file, written, 23, MPI_INT);
    MPI_File_write_ordered_end(file, written, MPI_STATUS_IGNORE);
    rewind_both_pointers();
    MPI_File_read_all_begin(file, read_back, 21, MPI_INT);
    MPI_File_read_all_end(file, read_back, MPI_STATUS_IGNORE);
    MPI_File_read_at_all_begin(file, mine(5), read_back, 22, MPI_INT);
    MPI_File_read_at_all_end(file, read_back, MPI_STATUS_IGNORE);
    CHECK(read_back[21] == 21);
    MPI_File_read_ordered_begin(file, read_back, 23, MPI_INT);
    MPI_File_read_ordered_end(file, read_back, MPI_STATUS_IGNORE);
}

/* At the end of the file, less is read than requested. */
static void read_past_the_end(void)
{
    MPI_Offset size;
    MPI_File_set_size(file, 4000);
    MPI_File_get_size(file, &size);
    CHECK(size == 4000);
    MPI_File_read_at(file, size - 40, read_back, 77, MPI_INT, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    char path[4096];
    MPI_Info hints;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROOM; i++)
        written[i] = i;
    snprintf(path, sizeof path, "%s/data", argv[1]);
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                        &file) == MPI_SUCCESS);
    MPI_File_preallocate(file, 8192);
    MPI_File_set_atomicity(file, 0);
    rewind_both_pointers();
    write_blocking();
    rewind_both_pointers();
    read_blocking();
    write_nonblocking();
    rewind_both_pointers();
    read_nonblocking();
    split();
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    read_past_the_end();
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_Info_create(&hints);
    MPI_File_set_info(file, hints);
    MPI_Info_free(&hints);
    MPI_File_close(&file);
    if (rank == 0)
        CHECK(MPI_File_delete(path, MPI_INFO_NULL) == MPI_SUCCESS);

    MPI_File absent;
    snprintf(path, sizeof path, "%s/no such folder/data", argv[1]);
    CHECK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &absent) !=
          MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
