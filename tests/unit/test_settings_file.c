#include "base/settings_file.h"

#include "unit.h"

static struct settings_file file;
static char taken[1024]; /* "name=value;" of each pair */

static const char *take(const char *name, const char *value)
{
    size_t used = strlen(taken);
    if (strcmp(name, "wrong") == 0)
        return "wrong is refused";
    snprintf(taken + used, sizeof taken - used, "%s=%s;", name, value);
    return NULL;
}

static void read_path(const char *path, bool may_be_missing)
{
    taken[0] = '\0';
    settings_file_read(&file, path, may_be_missing, take);
}

static void read_bytes(const char *bytes, size_t count)
{
    FILE *written = fopen("file", "w");
    CHECK(written && fwrite(bytes, 1, count, written) == count && fclose(written) == 0);
    read_path("file", false);
}

static void read_text(const char *text)
{
    read_bytes(text, strlen(text));
}

static void check_not_used(const char *why)
{
    CHECK_TEXT(taken, "");
    CHECK_TEXT(file.fault, why);
    CHECK_EQUAL(file.more_faults, 0);
}

TEST(each_line_is_a_pair)
{
    read_text("# of the site\n\noutput = /scratch/%u/a b\n\tgpu-every-s=600\r\n   # more\nquiet=");
    CHECK_TEXT(taken, "output=/scratch/%u/a b;gpu-every-s=600;quiet=;");
    CHECK_TEXT(file.fault, "");
}

TEST(a_missing_file_is_a_fault_only_if_somebody_named_it)
{
    read_path("nothing", true);
    check_not_used("");
    read_path("nothing/here", true);
    check_not_used("");
    read_path("nothing", false);
    check_not_used("it is not used: No such file or directory");
}

TEST(a_file_that_is_not_text_is_not_used)
{
    read_bytes("memory = 8M\n\0quiet = on\n", 24);
    check_not_used("it is not used: not a text file");
    read_text("memory = \x1b[31m8M\n");
    check_not_used("it is not used: not a text file");
}

TEST(a_pipe_a_folder_and_an_endless_device_are_not_used)
{
    CHECK(mkfifo("pipe", 0600) == 0);
    read_path("pipe", true);
    check_not_used("it is not used: not a regular file");
    read_path(".", true);
    check_not_used("it is not used: not a regular file");
    read_path("/dev/zero", false);
    check_not_used("it is not used: not a regular file");
}

TEST(the_null_device_is_an_empty_file)
{
    read_path("/dev/null", false);
    check_not_used("");
}
