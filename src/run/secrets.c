/* Secrets are recognized by name alone, from two tables: words that suggest a secret at the end of a name, and parts that do so anywhere.
 * "key" and "token" are only in the first: --key-frames, --num-key-value-heads and --tokenizer are not secrets. docs/PRIVACY.md repeats
 * both tables. */
#include "secrets.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char *const LAST_WORDS[] = {"key",  "keys", "token", "pw",  "pwd",        "pass",
                                         "auth", "cred", "creds", "jwt", "transports", /* Open MPI's */
                                         NULL};
static const char *const PARTS[] = {"passw",     "passphrase", "secret",      "credential", "cookie", "apikey",
                                    "accesskey", "authtoken",  "accesstoken", "bearer",     NULL};

/* Where a name's last word begins: "key" of api-key, API_KEY and apiKey. */
static size_t last_word(const char *name, size_t length)
{
    size_t at = length;
    while (at > 0 && isalnum((unsigned char)name[at - 1]) &&
           !(at < length && isupper((unsigned char)name[at]) && islower((unsigned char)name[at - 1])))
        at--;
    return at;
}

bool secrets_named(const char *name, size_t length)
{
    while (length && isdigit((unsigned char)name[length - 1]))
        length--;
    size_t at = last_word(name, length);
    for (const char *const *word = LAST_WORDS; *word; word++)
        if (strlen(*word) == length - at && strncasecmp(name + at, *word, length - at) == 0)
            return true;
    for (const char *const *part = PARTS; *part; part++)
        for (size_t i = 0; i + strlen(*part) <= length; i++)
            if (strncasecmp(name + i, *part, strlen(*part)) == 0)
                return true;
    return false;
}

struct masked {
    char *text;
    size_t bytes, used;
};

static void put(struct masked *masked, const char *text, size_t length)
{
    size_t room = masked->bytes - 1 - masked->used;
    length = length < room ? length : room;
    memcpy(masked->text + masked->used, text, length);
    masked->used += length;
}

static void put_mask(struct masked *masked)
{
    put(masked, SECRETS_MASK, strlen(SECRETS_MASK));
}

/* scheme://user:password@host, also more than one of them. */
static void put_without_user(struct masked *masked, const char *word, size_t length)
{
    const char *end = word + length;
    for (const char *mark; (mark = memmem(word, (size_t)(end - word), "://", 3)); word = mark) {
        mark += 3;
        put(masked, word, (size_t)(mark - word));
        size_t authority = 0;
        while (mark + authority < end && !strchr("/?# ", mark[authority]))
            authority++;
        const char *at = memrchr(mark, '@', authority);
        if (!at)
            continue;
        put_mask(masked);
        mark = at;
    }
    put(masked, word, (size_t)(end - word));
}

static size_t length_of_name(const char *word, size_t length)
{
    const char *equals = memchr(word, '=', length);
    return equals ? (size_t)(equals - word) : length;
}

static void put_words(struct masked *masked, const char *text, size_t length, char separator);

static void put_word(struct masked *masked, const char *word, size_t length)
{
    size_t name = length_of_name(word, length);
    if (name < length && secrets_named(word, name)) {
        put(masked, word, name + 1);
        put_mask(masked);
    } else if (memchr(word, ' ', length))
        put_words(masked, word, length, ' '); /* a command in an argument: sh -c "..." */
    else
        put_without_user(masked, word, length);
}

static void put_words(struct masked *masked, const char *text, size_t length, char separator)
{
    bool is_next_secret = false;
    for (const char *word = text, *end = text + length; word < end;) {
        const char *after = memchr(word, separator, (size_t)(end - word));
        size_t word_length = (size_t)((after ? after : end) - word);
        bool is_option = *word == '-';
        if (is_next_secret && !is_option)
            put_mask(masked);
        else
            put_word(masked, word, word_length);
        is_next_secret = is_option && length_of_name(word, word_length) == word_length && secrets_named(word, word_length);
        if (after)
            put(masked, " ", 1);
        word += word_length + 1;
    }
}

void secrets_mask(const char *text, size_t text_bytes, char separator, char *masked, size_t bytes)
{
    struct masked result = {masked, bytes, 0};
    put_words(&result, text, text_bytes, separator);
    masked[result.used] = '\0';
}
