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

#define CHECK_READS(VARIABLE, TEXT, FIELD, VALUE) \
    do {                                          \
        read_with(VARIABLE, TEXT);                \
        CHECK_EQUAL(settings.FIELD, VALUE);       \
        CHECK_EQUAL(complaint_count, 0);          \
    } while (0)

#define CHECK_REFUSES(VARIABLE, TEXT, FIELD, DEFAULT)                                             \
    do {                                                                                          \
        read_with(VARIABLE, TEXT);                                                                \
        CHECK_EQUAL(settings.FIELD, DEFAULT);                                                     \
        CHECK_EQUAL(complaint_count, 1);                                                          \
        CHECK(strncmp(complaints[0], VARIABLE "=" TEXT " ", strlen(VARIABLE "=" TEXT " ")) == 0); \
    } while (0)

TEST(without_variables_the_defaults_stand)
{
    settings_read(complain);
    CHECK_EQUAL(complaint_count, 0);
    CHECK_TEXT(settings.output, "");
    CHECK_TEXT(settings.ledger, "");
    CHECK_EQUAL(settings.memory_bytes, 64 << 20);
    CHECK_EQUAL(settings.clock, CLOCK_AUTO);
    CHECK_TEXT(settings.exclude, "");
    CHECK(settings.start);
    CHECK_EQUAL(settings.verbose, 0);
    CHECK(!settings.quiet);
}

TEST(every_default_passes_the_users_parser)
{
    settings_read(NULL);
    for (size_t i = 0; i < SETTINGS_COUNT; i++)
        CHECK_TEXT(settings_value(i), SETTINGS_TABLE[i].fallback);
}

TEST(an_empty_variable_means_the_default)
{
    CHECK_READS("COMMPROF_MEMORY", "", memory_bytes, 64 << 20);
}

TEST(sizes_have_units)
{
    CHECK_READS("COMMPROF_MEMORY", "65536", memory_bytes, 65536);
    CHECK_READS("COMMPROF_MEMORY", "3k", memory_bytes, 3 << 10);
    CHECK_READS("COMMPROF_MEMORY", "3K", memory_bytes, 3 << 10);
    CHECK_READS("COMMPROF_MEMORY", "16M", memory_bytes, 16 << 20);
    CHECK_READS("COMMPROF_MEMORY", "16m", memory_bytes, 16 << 20);
    CHECK_READS("COMMPROF_MEMORY", "2G", memory_bytes, 2ll << 30);
    CHECK_READS("COMMPROF_SAMPLES", "0", samples_bytes, 0);
}

TEST(a_stretch_has_seconds_and_begins_at_one)
{
    CHECK_READS("COMMPROF_RECORD", "20", record.length_ns, 20000000000);
    CHECK_EQUAL(settings.record.begin_ns, 0);
    CHECK_READS("COMMPROF_RECORD", "0.25@3600.000000001", record.length_ns, 250000000);
    CHECK_EQUAL(settings.record.begin_ns, 3600000000001);
    CHECK_TEXT(settings_value(index_of("COMMPROF_RECORD")), "0.25@3600.000000001");
    CHECK_READS("COMMPROF_RECORD", "100@20", record.begin_ns, 20000000000);
    CHECK_TEXT(settings_value(index_of("COMMPROF_RECORD")), "100@20");
    CHECK_READS("COMMPROF_RECORD", "0", record.length_ns, 0);
    CHECK_READS("COMMPROF_RECORD", "1.00000000019", record.length_ns, 1000000000);
}

TEST(malformed_stretches_are_named_and_the_default_stands)
{
    CHECK_REFUSES("COMMPROF_RECORD", "20s", record.length_ns, 0);
    CHECK_REFUSES("COMMPROF_RECORD", "20@", record.length_ns, 0);
    CHECK_REFUSES("COMMPROF_RECORD", "@20", record.length_ns, 0);
    CHECK_REFUSES("COMMPROF_RECORD", "-1", record.length_ns, 0);
    CHECK_REFUSES("COMMPROF_RECORD", "1.@2", record.length_ns, 0);
    CHECK_REFUSES("COMMPROF_RECORD", "1,5", record.length_ns, 0);
    CHECK_REFUSES("COMMPROF_RECORD", "1@2@3", record.length_ns, 0);
    CHECK_REFUSES("COMMPROF_RECORD", "1000000000", record.length_ns, 0);
    CHECK_REFUSES("COMMPROF_RECORD", "1@99999999999999999999999", record.length_ns, 0);
}

TEST(malformed_sizes_are_named_and_the_default_stands)
{
    CHECK_REFUSES("COMMPROF_MEMORY", "much", memory_bytes, 64 << 20);
    CHECK_REFUSES("COMMPROF_MEMORY", "-5", memory_bytes, 64 << 20);
    CHECK_REFUSES("COMMPROF_MEMORY", " -5", memory_bytes, 64 << 20);
    CHECK_REFUSES("COMMPROF_MEMORY", "5T", memory_bytes, 64 << 20);
    CHECK_REFUSES("COMMPROF_MEMORY", "5MB", memory_bytes, 64 << 20);
    CHECK_REFUSES("COMMPROF_MEMORY", "1.5G", memory_bytes, 64 << 20);
    CHECK_REFUSES("COMMPROF_MEMORY", "17179869184G", memory_bytes, 64 << 20); /* 2^64 */
    CHECK_REFUSES("COMMPROF_MEMORY", "99999999999999999999", memory_bytes, 64 << 20);
}

TEST(numbers_are_decimal)
{
    CHECK_READS("COMMPROF_VERBOSE", "0", verbose, 0);
    CHECK_READS("COMMPROF_VERBOSE", "2", verbose, 2);
}

TEST(malformed_numbers_are_named_and_the_default_stands)
{
    CHECK_REFUSES("COMMPROF_VERBOSE", "very", verbose, 0);
    CHECK_REFUSES("COMMPROF_VERBOSE", "2x", verbose, 0);
    CHECK_REFUSES("COMMPROF_VERBOSE", "-1", verbose, 0);
    CHECK_REFUSES("COMMPROF_VERBOSE", " -1", verbose, 0);
    CHECK_REFUSES("COMMPROF_VERBOSE", "99999999999999999999", verbose, 0);
}

TEST(flags_have_the_usual_words)
{
    CHECK_READS("COMMPROF_QUIET", "on", quiet, true);
    CHECK_READS("COMMPROF_QUIET", "1", quiet, true);
    CHECK_READS("COMMPROF_QUIET", "yes", quiet, true);
    CHECK_READS("COMMPROF_QUIET", "TRUE", quiet, true);
    CHECK_READS("COMMPROF_START", "off", start, false);
    CHECK_READS("COMMPROF_START", "0", start, false);
    CHECK_READS("COMMPROF_START", "No", start, false);
    CHECK_READS("COMMPROF_START", "false", start, false);
}

TEST(malformed_flags_are_named_and_the_default_stands)
{
    CHECK_REFUSES("COMMPROF_QUIET", "maybe", quiet, false);
    CHECK_REFUSES("COMMPROF_START", "2", start, true);
    CHECK_REFUSES("COMMPROF_START", "of", start, true);
}

TEST(clocks_have_names)
{
    CHECK_READS("COMMPROF_CLOCK", "auto", clock, CLOCK_AUTO);
    CHECK_READS("COMMPROF_CLOCK", "counter", clock, CLOCK_COUNTER);
    CHECK_READS("COMMPROF_CLOCK", "Monotonic", clock, CLOCK_GETTIME);
}

TEST(malformed_clocks_are_named_and_the_default_stands)
{
    CHECK_REFUSES("COMMPROF_CLOCK", "sundial", clock, CLOCK_AUTO);
}

TEST(texts_are_taken_as_they_are)
{
    read_with("COMMPROF_OUTPUT", "/scratch/run of %p");
    CHECK_TEXT(settings.output, "/scratch/run of %p");
    CHECK_EQUAL(complaint_count, 0);
}

TEST(a_text_that_does_not_fit_is_named_and_the_default_stands)
{
    static char long_text[SETTING_TEXT_BYTES + 1];
    memset(long_text, 'x', sizeof long_text - 1);
    read_with("COMMPROF_OUTPUT", long_text);
    CHECK_TEXT(settings.output, "");
    CHECK_EQUAL(complaint_count, 1);
    CHECK(strncmp(complaints[0], "COMMPROF_OUTPUT=xxx", 19) == 0);
}

TEST(a_complaint_says_what_is_understood_and_what_is_used)
{
    read_with("COMMPROF_CLOCK", "sundial");
    CHECK(strstr(complaints[0], SETTINGS_TABLE[index_of("COMMPROF_CLOCK")].argument) != NULL);
    CHECK(strstr(complaints[0], "using auto") != NULL);
}

TEST(a_variable_that_is_no_setting_is_named_once)
{
    read_with("COMMPROF_OUTPT", "/scratch");
    CHECK_EQUAL(complaint_count, 1);
    CHECK(strncmp(complaints[0], "COMMPROF_OUTPT ", 15) == 0);
}

TEST(the_beginning_of_a_settings_name_is_not_the_setting)
{
    read_with("COMMPROF_OUT", "/scratch");
    CHECK_EQUAL(complaint_count, 1);
    CHECK_TEXT(settings.output, "");
}

TEST(variables_of_other_programs_are_ignored)
{
    read_with("COMMPROFILER", "x");
    CHECK_EQUAL(complaint_count, 0);
}

TEST(every_fault_is_named)
{
    setenv("COMMPROF_CLOCK", "sundial", 1);
    setenv("COMMPROF_MEMORY", "much", 1);
    read_with("COMMPROF_TYPO", "1");
    CHECK_EQUAL(complaint_count, 3);
}

TEST(faults_may_go_unsaid)
{
    setenv("COMMPROF_CLOCK", "sundial", 1);
    setenv("COMMPROF_TYPO", "1", 1);
    settings_read(NULL);
    CHECK_EQUAL(settings.clock, CLOCK_AUTO);
}

TEST(reading_again_forgets_the_first_reading)
{
    read_with("COMMPROF_MEMORY", "1M");
    settings_read(complain);
    CHECK_EQUAL(settings.memory_bytes, 64 << 20);
}

TEST(a_value_is_printed_as_it_can_be_read_again)
{
    read_with("COMMPROF_MEMORY", "1536K");
    CHECK_TEXT(settings_value(index_of("COMMPROF_MEMORY")), "1536K");
    read_with("COMMPROF_MEMORY", "2048K");
    CHECK_TEXT(settings_value(index_of("COMMPROF_MEMORY")), "2M");
    read_with("COMMPROF_MEMORY", "1000");
    CHECK_TEXT(settings_value(index_of("COMMPROF_MEMORY")), "1000");
    read_with("COMMPROF_MEMORY", "4096G");
    CHECK_TEXT(settings_value(index_of("COMMPROF_MEMORY")), "4096G");
    read_with("COMMPROF_CLOCK", "MONOTONIC");
    CHECK_TEXT(settings_value(index_of("COMMPROF_CLOCK")), "monotonic");
    read_with("COMMPROF_QUIET", "1");
    CHECK_TEXT(settings_value(index_of("COMMPROF_QUIET")), "on");
    read_with("COMMPROF_OUTPUT", "run");
    CHECK_TEXT(settings_value(index_of("COMMPROF_OUTPUT")), "run");
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

TEST(an_empty_list_leaves_nothing_out)
{
    settings_read(NULL);
    CHECK(!settings_excludes("MPI_Test"));
}

TEST(a_list_of_nothing_but_commas_leaves_nothing_out)
{
    read_with("COMMPROF_EXCLUDE", ",, ,MPI_,");
    CHECK(!settings_excludes("MPI_Test"));
}

TEST(ranks_are_a_list_or_one_per_node)
{
    read_with("COMMPROF_RANKS", "0-63:8,5");
    CHECK_TEXT(settings.ranks, "0-63:8,5");
    read_with("COMMPROF_RANKS", "One-Per-Node");
    CHECK_TEXT(settings.ranks, SETTING_ONE_PER_NODE);
    CHECK_EQUAL(complaint_count, 0);
    read_with("COMMPROF_RANKS", "one");
    CHECK_TEXT(settings.ranks, "");
    CHECK_TEXT(complaints[0], "COMMPROF_RANKS=one is not understood (LIST); using the default");
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

TEST(a_site_has_defaults_of_its_own)
{
    site_says("output = /scratch/%u/commprof/%j\nGPU-every_s = 600\nquiet = on\n");
    CHECK_EQUAL(complaint_count, 0);
    CHECK_TEXT(settings.output, "/scratch/%u/commprof/%j");
    CHECK_EQUAL(settings.gpu_every_s, 600);
    CHECK(settings.quiet);
    CHECK_EQUAL(settings.memory_bytes, 64 << 20);
}

TEST(a_variable_takes_precedence_over_the_site)
{
    setenv("COMMPROF_MEMORY", "2M", 1);
    site_says("memory = 8M\nsamples = 1M\n");
    CHECK_EQUAL(settings.memory_bytes, 2 << 20);
    CHECK_EQUAL(settings.samples_bytes, 1 << 20);
}

TEST(a_malformed_variable_leaves_the_sites_value)
{
    setenv("COMMPROF_MEMORY", "much", 1);
    site_says("memory = 8M\n");
    CHECK_EQUAL(settings.memory_bytes, 8 << 20);
    CHECK_TEXT(complaints[0], "COMMPROF_MEMORY=much is not understood (SIZE); using 8M");
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

TEST(the_source_of_a_value_is_known)
{
    setenv("COMMPROF_MEMORY", "2M", 1);
    site_says("memory = 8M\nsamples = 1M\nexclude =\n");
    CHECK_TEXT(settings_source(index_of("COMMPROF_MEMORY")), "COMMPROF_MEMORY");
    CHECK_TEXT(settings_source(index_of("COMMPROF_SAMPLES")), "site.conf");
    CHECK(!settings_source(index_of("COMMPROF_EXCLUDE")));
    CHECK(!settings_source(index_of("COMMPROF_CLOCK")));
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

TEST(a_user_may_have_another_profile_than_the_site)
{
    setenv("COMMPROF_PROFILE", "full", 1);
    site_says("profile = site\nmemory = 8M\n");
    CHECK_EQUAL(settings.samples_bytes, 4 << 20);
    CHECK_EQUAL(settings.memory_bytes, 8 << 20);
    CHECK_REFUSES("COMMPROF_PROFILE", "small", profile, PROFILE_SITE);
}

TEST(a_site_that_is_gone_leaves_nothing)
{
    site_says("memory = 8M\n");
    setenv("COMMPROF_CONFIG", "/dev/null", 1);
    settings_read(complain);
    CHECK_EQUAL(settings.memory_bytes, 64 << 20);
    CHECK_EQUAL(complaint_count, 0);
}
