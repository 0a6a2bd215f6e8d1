#include "run/secrets.h"

#include "unit.h"

static bool is_secret(const char *name)
{
    return secrets_named(name, strlen(name));
}

static const char *masked(const char *text, char separator, size_t bytes)
{
    static char result[512];
    secrets_mask(text, bytes, separator, result, sizeof result);
    return result;
}

#define LINE(TEXT) masked(TEXT, ' ', strlen(TEXT))
#define ARGUMENTS(TEXT) masked(TEXT, '\0', sizeof(TEXT) - 1)

static void a_name_means_a_secret_by_its_last_word(void)
{
    static const char *const NAMES[] = {"WANDB_API_KEY", "--hf-token", "dbPw",      "db.pwd",
                                        "api_key2",      "SLURM_JWT",  "PMIX_AUTH", "OMPI_MCA_orte_precondition_transports"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        unit_context = NAMES[i];
        CHECK(is_secret(NAMES[i]));
    }
}

static void a_name_means_a_secret_by_a_part(void)
{
    static const char *const NAMES[] = {"PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "--secret-file", "FI_CREDENTIALS", "APIKey", "MPICH_COOKIE"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        unit_context = NAMES[i];
        CHECK(is_secret(NAMES[i]));
    }
}

static void harmless_names_stay(void)
{
    static const char *const NAMES[] = {"--key-frames", "--num-key-value-heads", "--tokenizer", "--max-tokens", "--monkey", "--author",
                                        "--passes",     "OMPI_COMM_WORLD_SIZE",  "--compass",   "-p",           "",         "7"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        unit_context = NAMES[i];
        CHECK(!is_secret(NAMES[i]));
    }
}

static void the_value_of_an_option_is_masked_in_both_forms(void)
{
    CHECK_TEXT(ARGUMENTS("train\0--wandb-api-key=abc\0--password\0two words\0--lr\0001"),
               "train --wandb-api-key=*** --password *** --lr 1");
    CHECK_TEXT(ARGUMENTS("train\0--password=two words\0x"), "train --password=*** x");
    CHECK_TEXT(ARGUMENTS("train\0wandb.api_key=abc\0--token\0--lr\0001"), "train wandb.api_key=*** --token --lr 1");
}

static void a_command_in_an_argument_is_masked_too(void)
{
    CHECK_TEXT(ARGUMENTS("sh\0-c\0train --password x --lr 1"), "sh -c train --password *** --lr 1");
    CHECK_TEXT(LINE("train --password x y"), "train --password *** y");
}

static void user_and_password_of_urls_are_masked(void)
{
    CHECK_TEXT(LINE("--db=postgres://u:p@host/x https://host/a@b git+ssh://t@h"),
               "--db=postgres://***@host/x https://host/a@b git+ssh://***@h");
    CHECK_TEXT(LINE("tcp://a:1,http://u:p@q@b:2"), "tcp://a:1,http://***@b:2");
    CHECK_TEXT(LINE("http://h/?token=abc"), "http://h/?token=***");
}

static void other_text_stays_as_it_is(void)
{
    CHECK_TEXT(LINE("self,vader  a=b @ : :// "), "self,vader  a=b @ : :// ");
    CHECK_TEXT(ARGUMENTS("train\0--key-frames\0003\0"), "train --key-frames 3 ");
    CHECK_TEXT(LINE(""), "");
}

static void what_does_not_fit_is_cut(void)
{
    char little[8];
    secrets_mask("train --password x", 18, ' ', little, sizeof little);
    CHECK_TEXT(little, "train -");
}

static const struct unit_test TESTS[] = {
    TEST(a_name_means_a_secret_by_its_last_word),
    TEST(a_name_means_a_secret_by_a_part),
    TEST(harmless_names_stay),
    TEST(the_value_of_an_option_is_masked_in_both_forms),
    TEST(a_command_in_an_argument_is_masked_too),
    TEST(user_and_password_of_urls_are_masked),
    TEST(other_text_stays_as_it_is),
    TEST(what_does_not_fit_is_cut),
};

int main(void)
{
    return UNIT_RUN(TESTS);
}
