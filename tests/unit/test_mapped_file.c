#include "base/mapped_file.h"

#include "unit.h"

#include <fcntl.h>

static struct mapped_file file;

static void *map(const char *name)
{
    int opened = open(name, O_RDWR | O_CREAT, 0600);
    CHECK(opened >= 0 && ftruncate(opened, 8192) == 0);
    void *address = mmap(NULL, 8192, PROT_READ, MAP_SHARED, opened, 0);
    CHECK(address != MAP_FAILED);
    close(opened);
    return address;
}

/* Maps a file whose path has this many bytes as the kernel writes it: four for a line feed. */
static void *map_at_path_of(size_t bytes)
{
    enum { FOLDER_BYTES = 1 + 4 * 60 };
    char here[PATH_MAX], name[NAME_MAX + 1] = "";
    CHECK(getcwd(here, sizeof here) != NULL);
    size_t left = bytes - strlen(here);
    for (memset(name, '\n', 60); left > 1 + NAME_MAX; left -= FOLDER_BYTES)
        CHECK(mkdir(name, 0700) == 0 && chdir(name) == 0);
    memset(name, 'a', left - 1);
    name[left - 1] = '\0';
    return map(name);
}

TEST(a_path_that_just_fits_is_found)
{
    CHECK(mapped_file_find(map_at_path_of(PATH_MAX - 1), &file));
    CHECK(strchr(file.path, '\n') != NULL);
    CHECK(access(file.path, F_OK) == 0);
}

TEST(an_address_at_which_no_mapping_begins_has_no_file)
{
    char *address = map("file");
    CHECK(!mapped_file_find(address + 4096, &file));
}
