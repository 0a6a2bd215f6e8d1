/* store LEDGER DATABASE: the database that the library makes of a ledger (stored.py). */
#include "output/store.h"

#include "ledger/ledger.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
    char why[512] = "";
    struct stat about;
    int file = argc == 3 ? open(argv[1], O_RDONLY) : -1;
    if (file < 0 || fstat(file, &about) != 0)
        return 2;
    void *memory = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED)
        return 2;
    the_ledger.header = memory;
    bool is_stored = store_write(memory, argv[2], NULL, 0, why, sizeof why);
    fputs(why, stderr);
    return !is_stored;
}
