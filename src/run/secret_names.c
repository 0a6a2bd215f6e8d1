/* Words are compared in lower case with "_" around each: "apiKey2" is "_api_key_". A pattern with
 * "_" at its side is a whole word there ("_key_" is not in "_monkey_"), without it part of one
 * ("passw" is in "_pgpassword_"). docs/PRIVACY.md describes the tables. */
#include "secret_names.h"

#include <stdbool.h>
#include <string.h>

/* clang-format off */
/* Anywhere in a name. */
static const char *const ALWAYS[] = {
    "passw", "passphrase", "passcode", "passkey", "sshpass", "dbpass", "userpass", "storepass",
    "keypass", "secret", "credential", "_cred_", "_creds_", "_cookie_", "_cookies_", "_bearer_",
    "_jwt_", "webhook", "_auths_", "apikey", "_api_key_", "accesskey", "_access_key_",
    "privatekey", "_private_key_", "sessionkey", "_session_key_", "accountkey", "_account_key_",
    "authkey", "_auth_key_", "accesstoken", "_access_token_", "authtoken", "_auth_token_",
    "connectionstring", "_connection_string_", "connstr", "_conn_str_", NULL};
/* At the end of a name: --token and hf_token, not --token-dropout. "transports" is Open MPI's
 * orte_precondition_transports. */
static const char *const AT_END[] = {
    "_key_", "token_", "_pw_", "pwd_", "_pass_", "auth_", "_authorization_", "_authentication_",
    "_sig_", "_signature_", "_sas_", "_dsn_", "_otp_", "_pat_", "_transports_", NULL};
static const char *const AT_END_UNLESS_NUMBER[] = {"_keys_", "tokens_", NULL};
/* Words at the end that leave the meaning as it is: TOKEN_V2, TOKEN_BASE64. */
static const char *const SUFFIXES[] = {"_v_", "_value_", "_string_", "_base_", "_b_", "_prod_",
                                       "_dev_", "_test_", NULL};
/* Names that end like secrets and are none. */
static const char *const HARMLESS[] = {
    "_max_tokens_", "_max_new_tokens_", "_pad_token_", "_eos_token_", "_bos_token_", "_unk_token_",
    "_sep_token_", "_cls_token_", "_mask_token_", "_special_tokens_", "_stop_tokens_",
    "_public_key_", "_sort_key_", "_primary_key_", NULL};
/* Beginnings of keys and tokens. */
static const char *const PREFIXES[] = {
    "AKIA", "ASIA", "AIza", "ya29.", "eyJ", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
    "glpat-", "gldt-", "glrt-", "hf_", "sk-", "sk_live_", "sk_test_", "rk_live_", "rk_test_",
    "xoxa-", "xoxb-", "xoxp-", "xoxr-", "xoxs-", "xoxe.", "xapp-", "npm_", "pypi-", "nvapi-",
    "gsk_", "r8_", "SG.", "hvs.", "dop_v1_", "shpat_", "glsa_", "AGE-SECRET-KEY-", "lin_api_",
    "hooks.slack.com/services/", "discord.com/api/webhooks/", "webhook.office.com/", NULL};
/* clang-format on */

enum { WORDS_BYTES = 256, MOST_TO_TELL = 128 };

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Names: a capital begins a word after a small letter (apiKey), and before one (APIKey). */

static bool begins_word(const char *name, size_t at, size_t length)
{
    if (!at || !is_upper(name[at]))
        return false;
    bool is_before_small = at + 1 < length && is_lower(name[at + 1]);
    return is_lower(name[at - 1]) || (is_upper(name[at - 1]) && is_before_small);
}

/* "_api_key_" of "apiKey2"; the end of a name that is too long. */
static void write_words(const char *name, size_t length, char words[WORDS_BYTES])
{
    size_t used = 0;
    words[used++] = '_';
    for (size_t at = length > 100 ? length - 100 : 0; at < length; at++) {
        bool is_letter = is_upper(name[at]) || is_lower(name[at]);
        if (words[used - 1] != '_' && (!is_letter || begins_word(name, at, length)))
            words[used++] = '_';
        if (is_letter)
            words[used++] = (char)(name[at] | 0x20);
    }
    if (words[used - 1] != '_')
        words[used++] = '_';
    words[used] = '\0';
}

static bool contains_one(const char *words, const char *const patterns[])
{
    for (; *patterns; patterns++)
        if (strstr(words, *patterns))
            return true;
    return false;
}

/* How long the first pattern is with which the words end; 0: none. */
static size_t ending(const char *words, const char *const patterns[])
{
    size_t length = strlen(words);
    for (; *patterns; patterns++) {
        size_t pattern = strlen(*patterns);
        if (pattern <= length && strcmp(words + length - pattern, *patterns) == 0)
            return pattern;
    }
    return 0;
}

enum secrecy secret_names_judge(const char *name, size_t length)
{
    char words[WORDS_BYTES];
    write_words(name, length, words);
    if (contains_one(words, ALWAYS))
        return SECRET;
    if (ending(words, HARMLESS))
        return NOT_SECRET;
    for (size_t suffix; (suffix = ending(words, SUFFIXES));)
        words[strlen(words) - suffix + 1] = '\0';
    if (ending(words, AT_END))
        return SECRET;
    return ending(words, AT_END_UNLESS_NUMBER) ? SECRET_UNLESS_NUMBER : NOT_SECRET;
}

/* Values */

static bool is_letter_or_digit(char c)
{
    return is_upper(c) || is_lower(c) || is_digit(c);
}

static bool is_in_token(char c)
{
    return is_letter_or_digit(c) || (c && strchr("_-.~+/=", c));
}

static size_t token_length(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && is_in_token(text[at]))
        at++;
    return at;
}

/* Tokens have long runs of letters and digits. Names (hf_transformers, sk-learn) have shorter ones,
 * and without digits. */
static bool looks_random(const char *text, size_t length)
{
    size_t run = 0;
    bool has_digit = false;
    for (size_t at = 0; at < length && at < MOST_TO_TELL; at++) {
        bool continues = is_letter_or_digit(text[at]);
        if (!is_in_token(text[at]))
            return false;
        run = continues ? run + 1 : 0;
        has_digit = continues && (has_digit || is_digit(text[at]));
        if (run >= 16 || (run >= 10 && has_digit))
            return true;
    }
    return false;
}

/* All up to its last line, or to the end of a text that is cut. */
static size_t private_key(const char *text, size_t length)
{
    static const char BEGIN[] = "-----BEGIN ", END[] = "-----END ";
    if (length < strlen(BEGIN) || memcmp(text, BEGIN, strlen(BEGIN)) != 0)
        return 0;
    if (!memmem(text, length < 64 ? length : 64, "PRIVATE KEY", 11))
        return 0;
    const char *last = memmem(text, length, END, strlen(END)), *behind = text + length;
    if (last)
        last += strlen(END);
    const char *dashes = last ? memmem(last, (size_t)(behind - last), "-----", 5) : NULL;
    return dashes ? (size_t)(dashes + 5 - text) : length;
}

size_t secret_names_shape(const char *text, size_t length)
{
    if (*text == '-')
        return private_key(text, length);
    for (const char *const *prefix = PREFIXES; *prefix; prefix++) {
        size_t known = strlen(*prefix);
        if (known >= length || memcmp(text, *prefix, known) != 0)
            continue;
        if (strchr(*prefix, '/') || looks_random(text + known, length - known))
            return known + token_length(text + known, length - known);
    }
    return 0;
}
