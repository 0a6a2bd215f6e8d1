#include "run/secrets.h"
#include "run/secret_names.h"

#include "unit.h"

static const char *arguments(const char *text, size_t bytes)
{
    static char result[8192];
    secrets_mask_arguments(text, bytes, result, sizeof result);
    return result;
}

static const char *line(const char *text)
{
    static char result[8192];
    secrets_mask_value("X", 1, text, result, sizeof result);
    return result;
}

static const char *lines(const char *text)
{
    static char result[8192];
    secrets_mask_lines(text, strlen(text), result, sizeof result);
    return result;
}

#define ARGUMENTS(TEXT) arguments(TEXT, sizeof(TEXT) - 1)

/* Names, most of them from the rules of secret scanners. */
static const char *const SECRETS[] = {"AWS_SECRET_ACCESS_KEY",
                                      "AWS_ACCESS_KEY_ID",
                                      "AWS_SESSION_TOKEN",
                                      "GITHUB_TOKEN",
                                      "GH_PAT",
                                      "GITLAB_PRIVATE_TOKEN",
                                      "CI_JOB_JWT_V2",
                                      "HF_TOKEN",
                                      "hf_tokens",
                                      "HUGGING_FACE_HUB_TOKEN",
                                      "WANDB_API_KEY",
                                      "wandb-api-key",
                                      "COMET_API_KEY",
                                      "NEPTUNE_API_TOKEN",
                                      "OPENAI_API_KEY",
                                      "ANTHROPIC_API_KEY",
                                      "REPLICATE_API_TOKEN",
                                      "KAGGLE_KEY",
                                      "NPM_TOKEN",
                                      "_authToken",
                                      "NPM_CONFIG__AUTH",
                                      "PYPI_PASSWORD",
                                      "TWINE_PASSWORD",
                                      "DOCKER_PASSWORD",
                                      "DOCKER_AUTH",
                                      "auths",
                                      "CODECOV_TOKEN",
                                      "CIRCLE_TOKEN",
                                      "TRAVIS_TOKEN",
                                      "JENKINS_API_TOKEN",
                                      "SONAR_TOKEN",
                                      "SENTRY_DSN",
                                      "SENTRY_AUTH_TOKEN",
                                      "DATADOG_APP_KEY",
                                      "DD_API_KEY",
                                      "NEW_RELIC_LICENSE_KEY",
                                      "AZURE_STORAGE_CONNECTION_STRING",
                                      "AZURE_STORAGE_KEY",
                                      "AZURE_CLIENT_SECRET",
                                      "AccountKey",
                                      "SharedAccessSignature",
                                      "sig",
                                      "X-Amz-Signature",
                                      "X-Amz-Security-Token",
                                      "AZURE_SAS",
                                      "GOOGLE_API_KEY",
                                      "GOOGLE_APPLICATION_CREDENTIALS",
                                      "GCLOUD_SERVICE_KEY",
                                      "private_key",
                                      "private_key_id",
                                      "client_secret",
                                      "clientSecret",
                                      "refresh_token",
                                      "access_token",
                                      "accessToken",
                                      "id_token",
                                      "SLACK_WEBHOOK_URL",
                                      "SLACK_BOT_TOKEN",
                                      "DISCORD_TOKEN",
                                      "TELEGRAM_BOT_TOKEN",
                                      "TWILIO_AUTH_TOKEN",
                                      "STRIPE_SECRET_KEY",
                                      "SENDGRID_API_KEY",
                                      "MAILGUN_API_KEY",
                                      "HEROKU_API_KEY",
                                      "DIGITALOCEAN_ACCESS_TOKEN",
                                      "CLOUDFLARE_API_TOKEN",
                                      "VAULT_TOKEN",
                                      "CONSUL_HTTP_TOKEN",
                                      "NGROK_AUTHTOKEN",
                                      "PGPASSWORD",
                                      "MYSQL_PWD",
                                      "REDISCLI_AUTH",
                                      "MONGO_PASSWORD",
                                      "SSHPASS",
                                      "db_pass",
                                      "dbPw",
                                      "db.pwd",
                                      "RABBITMQ_DEFAULT_PASS",
                                      "LDAP_BIND_PW",
                                      "GPG_PASSPHRASE",
                                      "BORG_PASSPHRASE",
                                      "SECRET_KEY_BASE",
                                      "DJANGO_SECRET_KEY",
                                      "ENCRYPTION_KEY",
                                      "SIGNING_KEY",
                                      "SSH_PRIVATE_KEY",
                                      "sessionKey",
                                      "Cookie",
                                      "Set-Cookie",
                                      "Authorization",
                                      "Proxy-Authorization",
                                      "X-Api-Key",
                                      "X-Auth-Token",
                                      "api_key",
                                      "apikey",
                                      "APIKey",
                                      "api_key2",
                                      "TOKEN_BASE64",
                                      "password",
                                      "passwd",
                                      "PASSWORD_FILE",
                                      "storepass",
                                      "bearer",
                                      "SLURM_JWT",
                                      "PMIX_AUTH",
                                      "MPICH_COOKIE",
                                      "OMPI_MCA_orte_precondition_transports",
                                      "access-key-id",
                                      "secret-file",
                                      "FI_CREDENTIALS"};

/* N is the name; the value is "hunter2" in all, and nothing else is called so. Blanks and
 * separators inside a value are masked, too. */
static const char *const CONTAINERS[] = {"N=hunter2",
                                         "N=hunter2 x,hunter2",
                                         "a=1,N=hunter2",
                                         "a=1;N=hunter2;b=2",
                                         "a=1,N=hunter2 hunter2,b=2",
                                         "x N=hunter2 y",
                                         "x N=hunter2,hunter2=hunter2 y",
                                         "N = hunter2",
                                         "N: hunter2 hunter2",
                                         "N:hunter2",
                                         "a:1,N:hunter2,b:2",
                                         "N := hunter2",
                                         "'N' => 'hunter2'",
                                         "if N == 'hunter2': x",
                                         "{\"N\": \"hunter2\"}",
                                         "{\"a\": 1, \"N\":\"hunter2\", \"b\": 2}",
                                         "{'a': {'N': 'hunter2 hunter2'}}",
                                         "{a: 1, N: hunter2 hunter2, b: 2}",
                                         "{\"N\": {\"a\": \"hunter2\", \"b\": [\"hunter2\"]}}",
                                         "{\"N\": [\"hunter2\", \"hunter2\"], \"b\": 2}",
                                         "{\"N\": \"a\\\"b hunter2\"}",
                                         "[{\"name\": \"N\", \"value\": \"hunter2\"}]",
                                         "https://host/x?a=1&N=hunter2&b=2",
                                         "https://host/x?N=hunter2#b",
                                         "https%3A%2F%2Fh%3Fa%3D1%26N%3Dhunter2",
                                         "https://h/#N=hunter2",
                                         "curl -H 'N: hunter2 hunter2' https://host",
                                         "curl -H \"N: Bearer hunter2\" x",
                                         "x -e N='hunter2 hunter2' y",
                                         "x -e \"N=hunter2 hunter2\" y",
                                         "x -e N=a\\ hunter2 y",
                                         "x -e N=a'b 'hunter2 y",
                                         "x -e N=$'a hunter2' y",
                                         "sh -c \"N='hunter2 hunter2' x\"",
                                         "sh -c 'x \"N=hunter2 hunter2\"'",
                                         "sh -c \"curl -H \\\"N: Bearer hunter2\\\" x\"",
                                         "sh -c 'x \"{\\\"N\\\": \\\"hunter2\\\"}\"'",
                                         "f(a, N='hunter2', b=2)",
                                         "f(N=hunter2, b=2)",
                                         "os.environ[\"N\"] = \"hunter2\"",
                                         "<a><N>hunter2</N></a>",
                                         "N=Basic hunter2",
                                         "--N hunter2",
                                         "x --N hunter2 y",
                                         "x --N -hunter2 y",
                                         "x --N 'a hunter2' y",
                                         "--N=hunter2 x",
                                         "x --N \"a \\\" hunter2\" y",
                                         "[\"--N\", \"hunter2\"]",
                                         "x '--N' 'hunter2' y",
                                         "--a=N=hunter2 hunter2",
                                         "N='a\\' hunter2",
                                         "N=\"hunter2",
                                         "{\"N\": \"hunter2",
                                         "don't N=hunter2",
                                         "don't --N a'b hunter2",
                                         "\303\244 N=\303\244hunter2",
                                         "a\\nN=hunter2",
                                         "\"x\\nN: hunter2\"",
                                         "N=\"\"\"a hunter2\"\"\"",
                                         "x | N=hunter2",
                                         "--X-N=hunter2"};

static void in_place_of_the_name(const char *container, const char *name, char *text)
{
    for (; *container; container++)
        text += sprintf(text, "%.*s", *container == 'N' ? (int)strlen(name) : 1,
                        *container == 'N' ? name : container);
    *text = '\0';
}

TEST(no_name_gives_its_value_away_in_any_container)
{
    for (size_t n = 0; n < sizeof SECRETS / sizeof *SECRETS; n++)
        for (size_t c = 0; c < sizeof CONTAINERS / sizeof *CONTAINERS; c++) {
            char text[1024];
            in_place_of_the_name(CONTAINERS[c], SECRETS[n], text);
            unit_context = text;
            CHECK(!strstr(line(text), "hunter2"));
            CHECK(!strstr(lines(text), "hunter2"));
            CHECK(!strstr(arguments(text, strlen(text)), "hunter2"));
        }
}

/* Shells, JSON and Python put quotes and backslashes around a text; as many times as a text goes
 * through them. */
static void quoted(const char *text, const char *before, char quote, const char *after,
                   char *result)
{
    result += sprintf(result, "%s%c", before, quote);
    for (; *text; text++)
        if (quote == '\'' && *text == quote)
            result += sprintf(result, "'\"'\"'"); /* a shell's */
        else
            result += sprintf(result, "%s%c",
                              quote == '"' && (*text == quote || *text == '\\') ? "\\" : "", *text);
    sprintf(result, "%c%s", quote, after);
}

TEST(no_name_gives_its_value_away_through_two_quotations)
{
    static const struct {
        const char *before;
        char quote;
        const char *after;
    } QUOTATIONS[] = {{"sh -c ", '\'', " x"},
                      {"sh -c ", '"', " x"},
                      {"{\"a\": 1, \"cmd\": ", '"', ", \"b\": 2}"},
                      {"['x', ", '"', "]"},
                      {"a=1,b=", '"', ",c=3"}};
    enum { COUNT = sizeof QUOTATIONS / sizeof *QUOTATIONS };
    for (size_t c = 0; c < sizeof CONTAINERS / sizeof *CONTAINERS; c++)
        for (size_t q = 0; q < COUNT * COUNT; q++) {
            char text[1024], once[4096], twice[8192];
            in_place_of_the_name(CONTAINERS[c], "HF_TOKEN", text);
            quoted(text, QUOTATIONS[q / COUNT].before, QUOTATIONS[q / COUNT].quote,
                   QUOTATIONS[q / COUNT].after, once);
            quoted(once, QUOTATIONS[q % COUNT].before, QUOTATIONS[q % COUNT].quote,
                   QUOTATIONS[q % COUNT].after, twice);
            unit_context = twice;
            CHECK(!strstr(line(once), "hunter2"));
            CHECK(!strstr(line(twice), "hunter2"));
            CHECK(!strstr(lines(twice), "hunter2"));
        }
}

TEST(what_is_no_secret_stays_as_it_is)
{
    static const char *const TEXTS[] = {
        "",
        "self,vader  a=b @ : :// ",
        "train --key-frames 3 --num-key-value-heads 4 --tokenizer x",
        "max_tokens=512",
        "--max-tokens 512",
        "{\"max_tokens\": 512, \"n_tokens\": 1, \"total_tokens\": 1e6}",
        "tokens=4096,batch=3",
        "pad_token=<pad>",
        "--eos-token x",
        "token_id=7 token_ids tokens_per_s=3",
        "tokenizer=x passes=3 author=me keyboard=de monkey=1 compass=2 bypass=3 --passes 3 -p x",
        "OMPI_COMM_WORLD_SIZE=4",
        "https://host:8080/a@b?x=1&y=2",
        "git@github.com:org/repo.git",
        "me@host:/x",
        "tcp://a:1,tcp://b:2",
        "prterun-h-12@0.0;tcp4://127.0.0.1:36543",
        "mlx5_0:1,mlx5_1:1",
        "ppr:2:node:PE=1",
        "quiet,mask_cpu:0x1,0x2",
        "2(x3),1",
        "don't \"x 'y",
        "sk-learn-pipeline-v2 hf_transformers npm_config_x eyJ",
        "std::pass::x",
        "/opt/auth:/opt/b",
        "a\\b \\\\ \\",
        "\303\244 \xff \x01 %20 %zz",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "${HF_TOKEN} $TOKEN secret password",
        "<a key-frames=\"3\"/>",
        "{\"a\": [1, {\"b\": \"c d\"}], 'e': None}",
        "((((((((((((((((((((((((((((((((((((((((x"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        unit_context = TEXTS[i];
        CHECK_TEXT(line(TEXTS[i]), TEXTS[i]);
        CHECK_TEXT(lines(TEXTS[i]), TEXTS[i]);
        CHECK_TEXT(arguments(TEXTS[i], strlen(TEXTS[i])), TEXTS[i]);
    }
}

TEST(only_the_secret_of_a_structure_is_masked)
{
    static const char *const TEXTS[][2] = {
        {"FOO=1,HF_TOKEN=S,BAR=2", "FOO=1,HF_TOKEN=***,BAR=2"},
        {"https://h/x?a=1&access_token=S&b=2", "https://h/x?a=1&access_token=***&b=2"},
        {"{\"password\": \"S\", \"lr\": 1}", "{\"password\": \"***\", \"lr\": 1}"},
        {"{\"a\": {\"credentials\": {\"u\": \"S\"}, \"lr\": 2}}",
         "{\"a\": {\"credentials\": ***, \"lr\": 2}}"},
        {"Authorization: Bearer S", "Authorization: ***"},
        {"X-Api-Key: S", "X-Api-Key: ***"},
        {"a:1,api_key:S,b:2", "a:1,api_key:***,b:2"},
        {"train --password x --lr 1", "train --password *** --lr 1"},
        {"train --password -S --lr 1", "train --password *** --lr 1"},
        {"train --password 'a S' --lr 1", "train --password '***' --lr 1"},
        {"train --token --lr 1", "train --token --lr 1"},
        {"train --hf-tokens S --max-tokens 5 --tokens 7",
         "train --hf-tokens *** --max-tokens 5 --tokens 7"},
        {"train --access-key-id S x", "train --access-key-id *** x"},
        {"curl -H \"Authorization: Bearer S\" https://h",
         "curl -H \"Authorization: ***\" https://h"},
        {"f(token='S', lr=1)", "f(token='***', lr=1)"},
        {"Server=h;Password=S;Port=1", "Server=h;Password=***;Port=1"},
        {"[\"--password\", \"S\", \"x\"]", "[\"--password\", \"***\", \"x\"]"},
        {"[{\"name\": \"HF_TOKEN\", \"value\": \"S\"}, {\"value\": 3}]",
         "[{\"name\": \"HF_TOKEN\", \"value\": \"***\"}, {\"value\": 3}]"},
        {"<a><password>S</password><b>1</b></a>", "<a><password>***</password><b>1</b></a>"}};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        CHECK_TEXT(line(TEXTS[i][0]), TEXTS[i][1]);
}

TEST(the_value_of_an_option_is_masked_in_both_forms)
{
    CHECK_TEXT(ARGUMENTS("train\0--wandb-api-key=abc\0--password\0two words\0--lr\0001"),
               "train --wandb-api-key=*** --password *** --lr 1");
    CHECK_TEXT(ARGUMENTS("train\0--password=two words\0x"), "train --password=*** x");
    CHECK_TEXT(ARGUMENTS("train\0wandb.api_key=abc\0--token\0--lr\0001"),
               "train wandb.api_key=*** --token --lr 1");
    CHECK_TEXT(ARGUMENTS("train\0--password\0-S\0x"), "train --password *** x");
    CHECK_TEXT(ARGUMENTS("train\0--password\0-secret\0S\0x"), "train --password *** *** x");
    CHECK_TEXT(ARGUMENTS("train\0--tokens\0007\0--tokens\0S\0--password"),
               "train --tokens 7 --tokens *** --password");
}

TEST(a_command_in_an_argument_is_masked_too)
{
    CHECK_TEXT(ARGUMENTS("sh\0-c\0train --password 'a S' --lr 1"),
               "sh -c train --password '***' --lr 1");
    CHECK_TEXT(ARGUMENTS("sh\0-c\0HF_TOKEN=S train\0x"), "sh -c HF_TOKEN=*** x");
}

TEST(user_and_password_are_masked)
{
    CHECK_TEXT(line("--db=postgres://u:p@host/x https://host/a@b git+ssh://t@h"),
               "--db=postgres://***@host/x https://host/a@b git+ssh://***@h");
    CHECK_TEXT(line("tcp://a:1,http://u:p@q@b:2"), "tcp://a:1,http://***@b:2");
    CHECK_TEXT(line("sql://u:S/x@host/data sql://:S@host"), "sql://***@host/data sql://***@host");
    CHECK_TEXT(line("u:S/x@host x --user=u:S@host"), "***@host x --user=***@host");
    CHECK_TEXT(line("{\"url\": \"sql://u:S@host\", \"mail\": \"a@b\"}"),
               "{\"url\": \"sql://***@host\", \"mail\": \"a@b\"}");
}

TEST(keys_of_well_known_services_are_masked)
{
    static const char *const KEYS[] = {
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_0123456789abcdefghij0123456789abcdef",
        "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
        "sk-proj-abcd_0123456789abcdef0123",
        "xoxb-123456789012-123456789012-abcdefghijkl",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "glpat-0123456789abcdefghij",
        "AIzaSyA0123456789abcdefghijklmnopqrstuv",
        "hooks.slack.com/services/T0/B0/S",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        char text[256];
        snprintf(text, sizeof text, "x --y=%s z", KEYS[i]);
        CHECK_TEXT(line(text), "x --y=*** z");
    }
    CHECK_TEXT(line("-----BEGIN PRIVATE KEY-----\nabc"), "***");
}

TEST(a_file_is_masked_line_by_line_and_block_by_block)
{
    CHECK_TEXT(
        lines("a: 1\npassword: S S\ncredentials:\n  a: S\n\n  b: S\nc: 3\nkey: |\n  S\nd: 4\n"),
        "a: 1\npassword: ***\ncredentials:***\nc: 3\nkey: ***\nd: 4\n");
    CHECK_TEXT(
        lines(
            "{\"a\": 1,\n \"password\":\n   \"S\",\n \"secrets\": [\"S\",\n  \"S\"], \"b\": 2}\n"),
        "{\"a\": 1,\n \"password\":\n   \"***\",\n \"secrets\": ***, \"b\": 2}\n");
    CHECK_TEXT(lines("password =\nx = 1\n"), "password =\nx = 1\n");
    CHECK_TEXT(lines("password: 1234\npasswd=5\nlr: 6\n"), "password: ***\npasswd=***\nlr: 6\n");
    CHECK_TEXT(lines("a:\r\n  password:\r\n    S\r\n  b: 1\r\n"),
               "a:\r\n  password:\r***\n  b: 1\r\n");
    CHECK_TEXT(lines("/etc/token: S S\n/opt/auth:/opt/b\n"), "/etc/token: ***\n/opt/auth:/opt/b\n");
}

TEST(a_setting_is_masked_by_its_name)
{
    char result[16];
    secrets_mask_value("HF_TOKEN", 8, "S", result, sizeof result);
    CHECK_TEXT(result, "***");
    secrets_mask_value("TOKENS", 6, "4096", result, sizeof result);
    CHECK_TEXT(result, "4096");
    secrets_mask_value("TOKENS", 6, "S", result, sizeof result);
    CHECK_TEXT(result, "***");
    CHECK(secrets_named("--hf-token", 10));
    CHECK(!secrets_named("", 0));
}

TEST(what_does_not_fit_is_cut)
{
    char little[8];
    secrets_mask_arguments("train --password x", 18, little, sizeof little);
    CHECK_TEXT(little, "train -");
    secrets_mask_arguments("train\0--password\0x", 18, little, 1);
    CHECK_TEXT(little, "");
}

static uint32_t random_number(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* Pieces of structures in any order; exact sizes, so that a sanitizer sees each byte beyond. */
TEST(any_text_is_read_within_its_bounds)
{
    static const char *const PIECES[] = {"password",
                                         "--token",
                                         "=",
                                         ":",
                                         "://",
                                         "@",
                                         "\"",
                                         "'",
                                         "\\",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         "(",
                                         ")",
                                         ",",
                                         ";",
                                         " ",
                                         "\n",
                                         "%3D",
                                         "&",
                                         "x",
                                         "-",
                                         "<",
                                         ">",
                                         "|",
                                         "Bearer",
                                         "ghp_",
                                         "-----BEGIN PRIVATE KEY",
                                         "value",
                                         "\xff",
                                         "tokens",
                                         "7"};
    enum { COUNT = sizeof PIECES / sizeof *PIECES, TEXTS = 20000 };
    for (int i = 0; i < TEXTS; i++) {
        char text[1024] = "";
        size_t used = 0, room = random_number() % 64 + 1;
        for (int piece = random_number() % 24; piece > 0; piece--)
            used += (size_t)sprintf(text + used, "%s", PIECES[random_number() % COUNT]);
        char *exact = malloc(used + 1), *masked = malloc(room);
        memcpy(exact, text, used + 1);
        unit_context = exact;
        secrets_mask_lines(exact, used, masked, room);
        CHECK(strlen(masked) < room);
        secrets_mask_arguments(exact, used, masked, room);
        secrets_mask_value(exact, used / 2, exact, masked, room);
        CHECK(strlen(masked) < room);
        free(exact);
        free(masked);
    }
}

/* No part of a text is read again and again: in a text of one piece repeated this would take
 * minutes. */
TEST(the_longest_text_is_masked_at_once)
{
    static const char *const PIECES[] = {
        "\\",  "'", "\"",    "token=", "a:", "=a:", "://", "a:b/://",
        "sk-", "(", "token", " ",      ",",  "a\n", "%",   "token:\n"};
    static char text[1 << 17], masked[1 << 18];
    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++) {
        size_t length = strlen(PIECES[i]);
        for (size_t at = 0; at + length < sizeof text; at += length)
            memcpy(text + at, PIECES[i], length + 1);
        unit_context = PIECES[i];
        secrets_mask_lines(text, strlen(text), masked, sizeof masked);
        secrets_mask_arguments(text, strlen(text), masked, sizeof masked);
    }
}
