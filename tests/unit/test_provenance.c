#include "run/provenance.h"

#include "base/settings.h"
#include "ledger/ledger.h"
#include "ledger_reader.h"
#include "unit.h"

#include <sys/prctl.h>
#include <time.h>

#define SHA256_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* Job ids */

static const char *const LAUNCHER_VARIABLES[] = {
    "SLURM_JOB_ID", "PBS_JOBID",   "LSB_JOBID",   "LSB_JOBINDEX",   "FLUX_JOB_ID",
    "COBALT_JOBID", "JOB_ID",      "SGE_TASK_ID", "PMIX_NAMESPACE", "SLURM_STEP_ID",
    "PALS_APID",    "ALPS_APP_ID", "PMI_JOBID"};

static void launched_by_nobody(void)
{
    for (size_t i = 0; i < sizeof LAUNCHER_VARIABLES / sizeof *LAUNCHER_VARIABLES; i++)
        unsetenv(LAUNCHER_VARIABLES[i]);
}

/* The same each time it is asked for, so each of these is asked in a process of its own. */
static const char *const *launcher;
static const char *expected_id;

static void ask_for_the_id(void)
{
    launched_by_nobody();
    for (const char *const *at = launcher; *at; at += 2)
        setenv(at[0], at[1], 1);
    CHECK_TEXT(provenance_job_id(), expected_id);
    setenv(launcher[0], "another", 1);
    CHECK_TEXT(provenance_job_id(), expected_id);
}

TEST(a_job_id_is_the_schedulers_and_the_launchers_and_of_an_array_the_elements)
{
    static const struct {
        const char *id, *variables[7];
    } JOBS[] = {
        {"4711-3", {"SLURM_JOB_ID", "4711", "SLURM_STEP_ID", "3"}},
        {"4711-3", {"LSB_JOBID", "4711", "LSB_JOBINDEX", "3"}},
        {"4711", {"JOB_ID", "4711", "SGE_TASK_ID", "undefined", "LSB_JOBINDEX", "5"}},
        {"node-17-prte-1---x-", {"PMIX_NAMESPACE", "node/17:prte@1 $(x)"}}, /* as a file's name */
    };
    for (unsigned i = 0; i < sizeof JOBS / sizeof *JOBS; i++) {
        launcher = JOBS[i].variables;
        expected_id = JOBS[i].id;
        unit_elsewhere(ask_for_the_id);
    }
}

/* Facts. tests/mpi/test_provenance.py has the machine, the user and the command line. */

static const char *recorded(const char *key)
{
    return reader_fact(the_ledger.header, key);
}

static void record(void)
{
    settings_read(NULL);
    CHECK_EQUAL(ledger_open("ledger", 4 << 20), 0);
    provenance_record();
}

TEST(the_environment_of_the_mpi_libraries_is_recorded)
{
    setenv("OMPI_MCA_btl", "self,vader", 1);
    setenv("UCX_TLS", "rc,sm", 1);
    setenv("NCCL_DEBUG", "", 1);
    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    setenv("MVP_X", "a=b", 1);
    setenv("COMMPROF_REPLAY_KIT", SHA256_OF_NOTHING, 1);
    record();
    CHECK_TEXT(recorded("env.OMPI_MCA_btl"), "self,vader");
    CHECK_TEXT(recorded("env.UCX_TLS"), "rc,sm");
    CHECK_TEXT(recorded("env.CUDA_VISIBLE_DEVICES"), "0,1");
    CHECK_TEXT(recorded("env.MVP_X"), "a=b");
    CHECK_TEXT(recorded("env.COMMPROF_REPLAY_KIT"), SHA256_OF_NOTHING);
}

TEST(nothing_else_of_the_environment_is_recorded)
{
    setenv("AWS_REGION", "eu", 1);
    setenv("XOMPI_MCA", "x", 1);
    setenv("CUDA_VISIBLE_DEVICES_TOO", "x", 1);
    record();
    CHECK_TEXT(recorded("env.AWS_REGION"), "");
    CHECK_TEXT(recorded("env.XOMPI_MCA"), "");
    CHECK_TEXT(recorded("env.CUDA_VISIBLE_DEVICES_TOO"), "");
    CHECK_TEXT(recorded("env.PATH"), "");
}

/* The whole file: it must not contain a secret anywhere. */
static bool ledger_holds(const char *text)
{
    size_t bytes =
        LEDGER_HEADER_BYTES + the_ledger.header->chunk_count * (size_t)LEDGER_CHUNK_BYTES;
    return memmem(the_ledger.header, bytes, text, strlen(text)) != NULL;
}

TEST(values_of_what_looks_like_a_secret_are_masked)
{
    setenv("SLURM_JWT", "hunter2-a", 1);
    setenv("OMPI_API_KEY", "hunter2-b", 1);
    setenv("HOROVOD_SECRET_KEY", "hunter2-c", 1);
    setenv("PMIX_AUTH", "hunter2-d", 1);
    setenv("UCX_my_token", "hunter2-e", 1);
    setenv("PBS_PASSWORD", "hunter2-f", 1);
    setenv("FI_CREDENTIALS", "hunter2-g", 1);
    setenv("MPICH_COOKIE", "hunter2-h", 1);
    setenv("OMPI_MCA_orte_precondition_transports", "hunter2-i", 1);
    setenv("HOROVOD_STORE", "redis://me:hunter2-j@host", 1);
    setenv("OMPI_MCA_mca_base_env_list", "LR=1;HF_TOKEN=hunter2-l;X=2", 1);
    setenv("OMPI_ARGV", "--word hunter2-k",
           1); /* it repeats the command line, which is stored only masked or not at all */
    record();
    CHECK(!ledger_holds("hunter2"));
    CHECK_TEXT(recorded("env.OMPI_API_KEY"), "***");
    CHECK_TEXT(recorded("env.HOROVOD_STORE"), "redis://***@host");
    CHECK_TEXT(recorded("env.OMPI_MCA_mca_base_env_list"), "LR=1;HF_TOKEN=***");
}

TEST(what_a_user_writes_about_a_job_is_not_recorded)
{
    setenv("SLURM_JOB_COMMENT", "the password is hunter2", 1);
    setenv("SLURM_JOB_EXTRA", "hunter2", 1);
    setenv("SLURM_JOB_NAME", "training", 1);
    setenv("I_MPI_EXTRA_FILESYSTEM", "on", 1);
    record();
    CHECK(!ledger_holds("hunter2"));
    CHECK_TEXT(recorded("env.SLURM_JOB_NAME"), "training");
    CHECK_TEXT(recorded("env.I_MPI_EXTRA_FILESYSTEM"), "on");
}

static void write_file(const char *path, const char *text, size_t bytes)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite(text, 1, bytes, file) == bytes && fclose(file) == 0);
}

TEST(a_small_file_of_settings_is_recorded_with_its_text)
{
    static const char RULES[] =
        "1 # collectives\n\n3 # ID\npassword = hunter2\n{\"hunter2\"}\n4 # size\n";
    write_file("rules.conf", RULES, strlen(RULES));
    setenv("OMPI_MCA_coll_tuned_dynamic_rules_filename", "rules.conf", 1);
    record();
    CHECK_TEXT(recorded("file.OMPI_MCA_coll_tuned_dynamic_rules_filename"),
               "1 # collectives\n\n3 # ID\npassword = ***\n4 # size\n");
    CHECK(!ledger_holds("hunter2"));
}

TEST(a_large_or_binary_file_of_settings_is_recorded_by_its_hash)
{
    static char large[4097];
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = i % 2 ? ' ' : 'x';
    write_file("large", large, sizeof large);
    write_file("small", large, sizeof large - 1);
    setenv("ROMIO_HINTS", "small", 1);
    write_file("a", "a\0b", 3);
    setenv("NCCL_TOPO_FILE", "large", 1);
    setenv("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", "a", 1);
    record();
    CHECK_TEXT(recorded("file.MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"),
               "3 bytes, FNV-1a e5d29919042666b2");
    CHECK(strncmp(recorded("file.NCCL_TOPO_FILE"), "4097 bytes, FNV-1a ", 19) == 0);
    CHECK(strncmp(recorded("file.ROMIO_HINTS"), "x x ", 4) == 0);
}

/* Not opened: files that a library writes, lists of hosts, secrets, missing files, and things that
 * are no file. */
TEST(no_other_file_is_opened)
{
    static const char *const NAMES[] = {
        "NCCL_DEBUG_FILE",     "UCX_LOG_FILE",          "PBS_NODEFILE",
        "NCCL_TOPO_DUMP_FILE", "I_MPI_HYDRA_HOST_FILE", "HOROVOD_TIMELINE",
        "UCX_TOKEN_FILES_KEY", "NCCL_GRAPH_FILE",       "ROMIO_HINTS"};
    write_file("private", "hunter2", 7);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        setenv(NAMES[i], "private", 1);
    setenv("NCCL_GRAPH_FILE", "absent", 1);
    setenv("ROMIO_HINTS", ".", 1);
    record();
    CHECK(!ledger_holds("hunter2"));
    CHECK(!ledger_holds("file."));
}

TEST(settings_host_and_program_are_recorded)
{
    char host[256];
    launched_by_nobody();
    setenv("SLURM_JOB_ID", "4711", 1);
    setenv("COMMPROF_MEMORY", "8M", 1);
    record();
    gethostname(host, sizeof host);
    CHECK_TEXT(recorded("host"), host);
    CHECK_TEXT(recorded("program"), "unit");
    CHECK_TEXT(recorded("run_id"), "4711");
    CHECK_TEXT(recorded("settings.COMMPROF_MEMORY"), "8M");
    CHECK_TEXT(recorded("settings.COMMPROF_CLOCK"), "auto");
    CHECK_TEXT(recorded("commprof_version"), COMMPROF_VERSION);
    CHECK(strlen(recorded("working_directory")) > 0);
}

TEST(facts_that_are_not_wanted_are_not_recorded)
{
    setenv("COMMPROF_FACTS", "kernel,env.UCX_*", 1);
    setenv("UCX_TLS", "rc,sm", 1);
    setenv("SLURM_JOB_USER", "ada", 1);
    record();
    CHECK_TEXT(recorded("env.UCX_TLS"), "rc,sm");
    CHECK(strncmp(recorded("kernel"), "Linux ", 6) == 0);
    CHECK_TEXT(recorded("program"), "unit");
    CHECK(!ledger_holds("SLURM_JOB_USER"));
    CHECK(!ledger_holds("command_line"));
    CHECK(!ledger_holds("working_directory"));
    CHECK(!ledger_holds("user_id"));
}

static const char *first_line_of(const char *path)
{
    static char line[128];
    FILE *file = fopen(path, "r");
    CHECK(file && fgets(line, sizeof line, file));
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* A reader compares this with /proc to learn whether a process of this host is alive. */
TEST(the_process_is_recorded_beyond_doubt)
{
    char namespace[64] = "", start[64] = "";
    prctl(PR_SET_NAME, "sh (x)\n7 8");
    record();
    CHECK(readlink("/proc/self/ns/pid", namespace, sizeof namespace - 1) > 0);
    FILE *stat = popen("sed -n '$s/.*) //p' /proc/$PPID/stat | cut -d' ' -f20", "r");
    CHECK(stat && fscanf(stat, "%63s", start) == 1);
    pclose(stat);
    CHECK_TEXT(recorded("boot_id"), first_line_of("/proc/sys/kernel/random/boot_id"));
    CHECK_TEXT(recorded("pid_namespace"), namespace);
    CHECK_TEXT(recorded("process_start"), start);
}

TEST(a_users_name_is_safe_in_a_path)
{
    setenv("USER", "HPC/ada lovelace", 1);
    CHECK_TEXT(provenance_user(), "HPC-ada-lovelace");
}

TEST(without_a_scheduler_the_day_is_today)
{
    char today[16];
    time_t now = time(NULL);
    struct tm date;
    unsetenv("SLURM_JOB_START_TIME");
    CHECK(localtime_r(&now, &date) && strftime(today, sizeof today, "%Y-%m-%d", &date) == 10);
    CHECK_EQUAL(strlen(provenance_date()), 10);
    CHECK(strcmp(provenance_date(), today) >= 0);
}

TEST(a_user_has_a_name_that_is_no_path)
{
    char number[16];
    unsetenv("LOGNAME");
    setenv("USER", "../ada lovelace", 1);
    snprintf(number, sizeof number, "%u", (unsigned)getuid());
    CHECK_TEXT(provenance_user(), number);
}
