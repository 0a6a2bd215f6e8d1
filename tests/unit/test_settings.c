#include "base/settings.h"

#include "base/clock.h"
#include "unit.h"

static char complaints[8][512];
static unsigned complaint_count;

static void complain(const char *line)
{
    CHECK(complaint_count < 8);
    snprintf(complaints[complaint_count++], sizeof complaints[0], "%s", line);
}

/* Read with one variable set. */
static void read_with(const char *variable, const char *value)
{
    complaint_count = 0;
    setenv(variable, value, 1);
    settings_read(complain);
    unsetenv(variable);
}

static size_t index_of(const char *variable)
{
    size_t index = 0;
    while (index < SETTINGS_COUNT && strcmp(SETTINGS_TABLE[index].variable, variable) != 0)
        index++;
    CHECK(index < SETTINGS_COUNT);
    return index;
}

TEST(every_default_passes_the_users_parser)
{
    settings_read(NULL);
    for (size_t i = 0; i < SETTINGS_COUNT; i++)
        CHECK_TEXT(settings_value(i), SETTINGS_TABLE[i].fallback);
}

/* Each is read as the value that is printed. NULL: it is named, and the default stands. */
TEST(a_value_is_read_as_it_is_printed_or_named)
{
    static const struct {
        const char *variable, *texts[12][2];
    } ROWS[] = {
        {"COMMPROF_MEMORY",
         {{"65536", "64K"},
          {"3k", "3K"},
          {"16m", "16M"},
          {"2G", "2G"},
          {"1000", "1000"},
          {"2048K", "2M"},
          {"4096G", "4096G"}}},
        {"COMMPROF_MEMORY",
         {{"much"},
          {"-5"},
          {" -5"},
          {"5T"},
          {"5MB"},
          {"1.5G"},
          {"17179869184G"},
          {"99999999999999999999"}}},
        {"COMMPROF_SAMPLES", {{"0", "0"}}},
        {"COMMPROF_RECORD",
         {{"20", "20"},
          {"0.25@3600.000000001", "0.25@3600.000000001"},
          {"100@20", "100@20"},
          {"0", "0"},
          {"1.00000000019", "1"}}},
        {"COMMPROF_RECORD",
         {{"20s"},
          {"20@"},
          {"@20"},
          {"-1"},
          {"1.@2"},
          {"1,5"},
          {"1@2@3"},
          {"1000000000"},
          {"1@99999999999999999999999"}}},
        {"COMMPROF_VERBOSE",
         {{"0", "0"}, {"2", "2"}, {"very"}, {"2x"}, {"-1"}, {" -1"}, {"99999999999999999999"}}},
        {"COMMPROF_QUIET", {{"on", "on"}, {"1", "on"}, {"yes", "on"}, {"TRUE", "on"}, {"maybe"}}},
        {"COMMPROF_START", {{"off", "off"}, {"0", "off"}, {"No", "off"}, {"false", "off"}}},
        {"COMMPROF_CLOCK",
         {{"auto", "auto"}, {"counter", "counter"}, {"Monotonic", "monotonic"}, {"sundial"}}},
        {"COMMPROF_RANKS",
         {{"0-63:8,5", "0-63:8,5"}, {"One-Per-Node", SETTING_ONE_PER_NODE}, {"one"}}},
        {"COMMPROF_OUTPUT", {{"run", "run"}}},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        for (const char *const(*row)[2] = ROWS[i].texts; (*row)[0]; row++) {
            char named[128];
            size_t index = index_of(ROWS[i].variable);
            unit_context = (*row)[0];
            read_with(ROWS[i].variable, (*row)[0]);
            CHECK_TEXT(settings_value(index),
                       (*row)[1] ? (*row)[1] : SETTINGS_TABLE[index].fallback);
            CHECK_EQUAL(complaint_count, (*row)[1] == NULL);
            snprintf(named, sizeof named, "%s=%s is not understood (", ROWS[i].variable, (*row)[0]);
            CHECK((*row)[1] || strncmp(complaints[0], named, strlen(named)) == 0);
        }
}

TEST(a_variable_that_is_no_setting_is_named_once)
{
    read_with("COMMPROF_OUTPT", "/scratch");
    CHECK_EQUAL(complaint_count, 1);
    CHECK(strncmp(complaints[0], "COMMPROF_OUTPT ", 15) == 0);
}

TEST(calls_are_left_out_by_name_with_or_without_prefix)
{
    read_with("COMMPROF_EXCLUDE", "MPI_Test,iprobe, mpi_TESTALL");
    CHECK(settings_excludes("MPI_Test"));
    CHECK(settings_excludes("MPI_Iprobe"));
    CHECK(settings_excludes("MPI_Testall"));
    CHECK(!settings_excludes("MPI_Testany"));
    CHECK(!settings_excludes("MPI_Tes"));
    CHECK(!settings_excludes("MPI_Send"));
}

TEST(a_list_names_whole_words_or_their_beginning)
{
    CHECK(settings_list_has("osu_*, solver", "osu_bw"));
    CHECK(settings_list_has("osu_*, solver", "Solver"));
    CHECK(settings_list_has("*", "anything"));
    CHECK(!settings_list_has("osu_*,solver", "solver2"));
    CHECK(!settings_list_has("osu_*,solver", "os"));
    CHECK(!settings_list_has("", "solver"));
}

/* The site's file. */

static void site_says(const char *text)
{
    FILE *file = fopen("site.conf", "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    complaint_count = 0;
    setenv("COMMPROF_CONFIG", "site.conf", 1);
    settings_read(complain);
}

TEST(a_malformed_variable_leaves_the_sites_value)
{
    setenv("COMMPROF_MEMORY", "much", 1);
    site_says("memory = 8M\n");
    CHECK_EQUAL(settings.memory_bytes, 8 << 20);
    CHECK_TEXT(complaints[0], "COMMPROF_MEMORY=much is not understood (SIZE); using 8M");
}

TEST(what_is_wrong_in_the_sites_file_is_one_line)
{
    site_says("memory = much\ntypo = 1\nconfig = other\nsamples = 1M\n");
    CHECK_EQUAL(complaint_count, 1);
    CHECK_TEXT(complaints[0], "site.conf, line 1: memory = much is not understood (SIZE); lines "
                              "that are not understood beyond this one: 2");
    CHECK_EQUAL(settings.memory_bytes, 64 << 20);
    CHECK_EQUAL(settings.samples_bytes, 1 << 20);
    site_says("typo = 1\n");
    CHECK_TEXT(complaints[0],
               "site.conf, line 1: typo is not a setting; commprof-run --help lists them");
}

TEST(the_sites_profile_has_defaults_below_all_else)
{
    setenv("COMMPROF_MEMORY", "8M", 1);
    site_says("copy-s = 5\nprofile = site\n");
    CHECK_EQUAL(complaint_count, 0);
    CHECK_EQUAL(settings.samples_bytes, 0);
    CHECK_TEXT(settings_source(index_of("COMMPROF_SAMPLES")), "profile=site");
    CHECK_EQUAL(settings.shortest_s, 60);
    CHECK_EQUAL(settings.copy_s, 5);
    CHECK_TEXT(settings_source(index_of("COMMPROF_COPY_S")), "site.conf");
    CHECK_EQUAL(settings.memory_bytes, 8 << 20);
    CHECK_TEXT(settings_source(index_of("COMMPROF_MEMORY")), "COMMPROF_MEMORY");
    CHECK(!settings_source(index_of("COMMPROF_UMASK")));
}

TEST(what_commprof_replay_says_of_itself_is_no_setting)
{
    setenv("COMMPROF_REPLAY_GAPS", "none", 1);
    site_says("");
    CHECK_EQUAL(complaint_count, 0);
    setenv("COMMPROF_REPLY_GAPS", "none", 1);
    site_says("");
    CHECK_EQUAL(complaint_count, 1);
}
