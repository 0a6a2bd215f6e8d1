#include "base/filesystems.h"

#include "files.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/statfs.h>

static int reserve(const char *path, size_t from, size_t bytes)
{
    int file = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0);
    int error = filesystems_reserve(file, from, bytes);
    close(file);
    return error;
}

/* 1 MB: 256 pages, 64 of which must remain free. */
TEST(the_last_quarter_of_a_file_system_in_memory_is_for_others)
{
    mount_here("memory", "tmpfs", "size=1m");
    CHECK_EQUAL(reserve("memory/file", 0, 193 * 4096), ENOSPC);
    CHECK_EQUAL(reserve("memory/file", 0, 192 * 4096), 0);
    CHECK_EQUAL(reserve("memory/another", 0, 4096), ENOSPC);
}

TEST(where_nothing_can_be_reserved_nothing_is_promised)
{
    mount_here("other", "ramfs", NULL);
    CHECK_EQUAL(reserve("other/file", 0, 4096), EOPNOTSUPP);
}

TEST(a_limit_on_file_sizes_is_said_without_a_signal)
{
    struct rlimit limit = {8192, 8192};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK_EQUAL(reserve("file", 0, 8192), 0);
    CHECK_EQUAL(reserve("file", 8192, 8193), EFBIG);
}

/* The private folder */

static char private[PATH_MAX];

static int open_private(const char *place)
{
    return filesystems_private_folder(place, private, sizeof private);
}

TEST(what_stands_in_its_place_is_not_used)
{
    CHECK_EQUAL(open_private("."), 0);
    CHECK(rename(private, "target") == 0);
    CHECK(symlink("target", private) == 0);
    CHECK_EQUAL(open_private("."), FILESYSTEMS_SQUATTED);
    CHECK(strncmp(filesystems_in_the_way(), private, strlen(private)) == 0 &&
          strstr(filesystems_in_the_way(), " is in the way: a link of user "));
    CHECK(unlink(private) == 0 && mkdir(private, 0700) == 0 && chmod(private, 0770) == 0);
    CHECK_EQUAL(open_private("."), FILESYSTEMS_SQUATTED);
    CHECK(strstr(filesystems_reason(FILESYSTEMS_SQUATTED), " is in the way: a folder of user ") &&
          strstr(filesystems_in_the_way(), ", mode 770"));
    CHECK(chmod(private, 0700) == 0);
    CHECK_EQUAL(open_private("."), 0);
    if (chown(private, 65534, 65534) != 0)
        unit_skip("needs root");
    CHECK_EQUAL(open_private("."), FILESYSTEMS_SQUATTED);
    CHECK(strstr(filesystems_in_the_way(), " is in the way: a folder of user 65534, mode 700"));
}

/* Folders in a folder where anybody may create files */

static void give_away(const char *path)
{
    if (lchown(path, 65534, 65534) != 0)
        unit_skip("needs root");
}

TEST(somebody_elses_folder_or_link_among_everybodys_is_foreign)
{
    CHECK(mkdir("shared", 0700) == 0 && chmod("shared", 01777) == 0);
    CHECK(mkdir("shared/ours", 0700) == 0 && mkdir("shared/theirs", 0700) == 0 &&
          symlink("/", "shared/link") == 0);
    give_away("shared/theirs");
    give_away("shared/link");
    CHECK(!filesystems_foreign("shared/ours"));
    CHECK(filesystems_foreign("shared/theirs"));
    CHECK(filesystems_foreign("shared/theirs/"));
    CHECK(filesystems_foreign("shared/link"));
    CHECK(!filesystems_foreign("shared/missing"));
    CHECK(chdir("shared") == 0);
    CHECK(filesystems_foreign("theirs"));
    CHECK(!filesystems_foreign("ours"));
}

TEST(where_not_everybody_may_make_folders_an_owner_is_trusted)
{
    CHECK(mkdir("group", 0700) == 0 && mkdir("group/theirs", 0700) == 0);
    give_away("group/theirs");
    CHECK(!filesystems_foreign("group/theirs"));
    CHECK(chmod("group", 0777) == 0); /* without the sticky bit every user could replace the folder,
                                         so its owner is not checked */
    CHECK(!filesystems_foreign("group/theirs"));
    CHECK(!filesystems_foreign("/"));
    CHECK(!filesystems_foreign("/tmp"));
}

TEST(no_link_of_somebody_else_is_followed_on_the_way)
{
    CHECK(mkdir("shared", 0700) == 0 && chmod("shared", 01777) == 0 && mkdir("target", 0700) == 0 &&
          mkdir("target/inner", 0700) == 0);
    CHECK(symlink("../target", "shared/theirs") == 0 && symlink("../target", "shared/ours") == 0);
    CHECK(symlink("shared/theirs", "through") == 0 && symlink("loop", "loop") == 0);
    give_away("shared/theirs");
    CHECK_EQUAL(filesystems_make_folders("shared/theirs/run"), FILESYSTEMS_FOREIGN);
    CHECK_EQUAL(filesystems_make_folders("shared/theirs/inner/deep/run"), FILESYSTEMS_FOREIGN);
    CHECK_EQUAL(filesystems_make_folders("through/run"), FILESYSTEMS_FOREIGN);
    CHECK_EQUAL(filesystems_make_folders("shared/ours/../shared//theirs/run"), FILESYSTEMS_FOREIGN);
    CHECK(filesystems_make_folders("loop/run") != 0);
    CHECK_EQUAL(rmdir("target/inner"), 0);
    CHECK_EQUAL(rmdir("target"), 0); /* nothing was created in it */
}

TEST(a_link_of_one_s_own_is_followed)
{
    char path[PATH_MAX + 32];
    CHECK(mkdir("shared", 0700) == 0 && chmod("shared", 01777) == 0 && mkdir("target", 0700) == 0);
    CHECK(symlink("../target", "shared/ours") == 0 && getcwd(path, PATH_MAX) != NULL);
    strcat(path, "/target");
    CHECK(symlink(path, "absolute") == 0);
    CHECK_EQUAL(filesystems_make_folders("shared/ours/a/run"), 0);
    CHECK_EQUAL(filesystems_make_folders("absolute/b/run/"), 0);
    CHECK(rmdir("target/a/run") == 0 && rmdir("target/b/run") == 0);
}
