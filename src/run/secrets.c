/* A text is searched for names that suggest a secret; where the secret begins is known then, and
 * where it ends is not asked. How the text quotes, nests or escapes it makes no difference:
 *
 *     HF_TOKEN=x   "password": "x"   X-Api-Key: x   --password x   /password:x
 *
 * A name without a value behind it is the value of something, or is used in code. The secret may
 * stand anywhere then, so the whole text is hidden:
 *
 *     {"value": "x", "name": "HF_TOKEN"}   setdefault('HF_TOKEN', 'x')   [secrets]   x | tee token
 *
 * In the rest of a text, words that look random are hidden, and user and query of a URL. Each word
 * is read a fixed number of times, so the time is linear in the length of the text. */
#include "secrets.h"

#include <string.h>

/* Patterns are in lower case. "_" is an optional separator; at the side of a pattern it stands for
 * the boundary of a word instead (key in apiKey, API_KEY and key2, not in monkey). A blank is a
 * blank or the end. */
/* clang-format off */
static const char *const NAMES[] = {
    "token", "passw", "pass_phrase", "pass_code", "pass_key", "pass_", "passe_", "_passin_", "_pw_",
    "pwd", "secret", "credential", "_cred_", "_creds_", "auth", "bearer", "jwt", "cookie", "key_",
    "keys_", "signature", "_sig_", "_sas_", "_dsn_", "_otp_", "_totp_", "_pat_", "_psk_", "_mfa_",
    "hmac", "session", "sess_id", "_sid_", "webhook", "hooks_slack", "_xox", "connection_string",
    "conn_str", "mnemonic", "seed_phrase", "precondition_transports", "sensitive", "confidential",
    "_tkn_", "--value_", "--body_", "login(", NULL};
/* Programs that are given secrets by options without such a name: mysql -pSECRET. */
static const char *const PROGRAMS[] = {
    "login ", "curl ", "wget ", "mysql ", "mysqldump ", "mysqladmin ", "mariadb ", "psql ",
    "mongo ", "mongosh ", "sqlplus ", "sqlcmd ", "isql ", "redis-cli ", "ldapsearch ",
    "ldapmodify ", "smbclient ", "lftp ", "svn ", "kinit ", "openssl ", "7z ", "unzip ", "gpg ",
    "ipmitool ", "snmpwalk ", "ssh-keygen ", "xfreerdp ", "vault ", "keyring ", "--user ",
    "--proxy-user ", NULL};
/* Words that contain such names and are harmless. */
static const char *const HARMLESS[] = {
    "_tokenize_", "_tokenized_", "_tokenizer_", "_tokenizers_", "_tokenization_", "_max_token_",
    "_max_tokens_", "_min_tokens_", "_num_token_", "_num_tokens_", "_seq_tokens_", "_new_tokens_",
    "_total_tokens_", "_train_tokens_", "_decay_tokens_", "_warmup_tokens_", "_batch_tokens_",
    "_prompt_tokens_", "_input_tokens_", "_output_tokens_", "_target_tokens_", "_tokens_per_",
    "_special_token_", "_special_tokens_", "_stop_token_", "_stop_tokens_", "_image_token_",
    "_pad_token_", "_eos_token_", "_bos_token_", "_unk_token_", "_sep_token_", "_cls_token_",
    "_mask_token_", "_tokens_to_generate_", "_token_dispatcher_", "_token_drop_", "_token_dropout_",
    "_token_type_", "_token_level_", "_token_count_", "_token_budget_", "_token_limit_",
    "_token_len_", "_token_length_", "_token_parallel_", "_token_shuffle_", "_token_embedding_",
    "_token_classification_", "_num_key_", "_num_keys_", "_max_key_", "_total_keys_", "_key_value_",
    "_key_size_", "_key_frame_", "_key_frames_", "_key_len_", "_key_length_", "_key_dim_",
    "_key_padding_", "_key_states_", "_key_proj_", "_key_bits_", "_key_range_", "_key_space_",
    "_key_heads_", "_key_mask_", "_key_cache_", "_public_key_", "_sort_key_", "_primary_key_",
    "_group_key_", "_by_key_", "_prov_key_", "_pkey_", "_rkey_", "_lkey_", "_mkey_", "_monkey_",
    "_hotkey_", "_donkey_", "_turkey_", "_author_", "_authors_", "_authored_", "_authority_",
    "_bypass_", "_compass_", "_num_pass_", "_multi_pass_", "_single_pass_", "_one_pass_",
    "_two_pass_", "_first_pass_", "_forward_pass_", "_backward_pass_", "_pass_environ_",
    "_pass_libpath_", "_pass_through_", "_pass_rate_", "_pw.x_", "_mpi_session_", "_sessions_",
    "_session_dir_", "_session_dirs_", "_session_attached_", "_case_sensitive_", NULL};
/* clang-format on */

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static bool is_blank(char c)
{
    return is_one_of(c, " \t\n\r\v\f");
}

static bool is_quote(char c)
{
    return is_one_of(c, "\"'`");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_letter(char c)
{
    return is_lower(c) || is_upper(c);
}

static char lower(char c)
{
    return is_upper(c) ? (char)(c | 0x20) : c;
}

static bool is_in_name(char c)
{
    return is_letter(c) || is_digit(c) || is_one_of(c, "_-.");
}

struct text {
    const char *begin, *end;
};

/* The first character from `at` on that is not in the set. */
static const char *skip(const struct text *text, const char *at, const char *set)
{
    while (at < text->end && is_one_of(*at, set))
        at++;
    return at;
}

static bool has_one_of(const struct text *text, const char *set)
{
    const char *at = text->begin;
    while (at < text->end && !is_one_of(*at, set))
        at++;
    return at < text->end;
}

/* Names */

/* A capital begins a word after a small letter (apiKey), and before one (APIKey). So does what is
 * behind a line break that is written "\\n". */
static bool is_boundary(const struct text *text, const char *at)
{
    if (at == text->begin || at == text->end || !is_letter(at[-1]) || !is_letter(*at))
        return true;
    bool is_before_small = at + 1 < text->end && is_lower(at[1]);
    return (is_upper(*at) && (is_lower(at[-1]) || is_before_small)) ||
           (at - text->begin > 1 && at[-2] == '\\');
}

/* Behind what matches '_' of a pattern at `at`, or NULL: at its ends a boundary of words, else
 * what may stand between two. */
static const char *match_gap(const struct text *text, const char *at, bool is_at_an_end)
{
    if (!is_at_an_end)
        return skip(text, at, "_-. ");
    return is_boundary(text, at) ? at : NULL;
}

/* Behind what matches the pattern at `at`, or NULL. */
static const char *match(const struct text *text, const char *at, const char *pattern)
{
    if (lower(*at) != pattern[*pattern == '_'])
        return NULL;
    for (const char *p = pattern; *p && at; p++)
        if (*p == '_')
            at = match_gap(text, at, p == pattern || !p[1]);
        else if (*p == ' ')
            return at == text->end || is_blank(*at) ? at : NULL;
        else
            at = at < text->end && lower(*at) == *p ? at + 1 : NULL;
    return at;
}

static const char *match_one(const struct text *text, const char *at, const char *const patterns[])
{
    const char *behind = NULL;
    while (*patterns && !behind)
        behind = match(text, at, *patterns++);
    return behind;
}

struct finding {
    const char *cut;      /* all from here on is hidden */
    bool is_found;        /* a name is, whatever it hides */
    bool is_whole;        /* the secret may be before the name, too */
    bool awaits_argument; /* the value is not in this text */
};

static void hide_from(struct finding *finding, const char *cut)
{
    finding->cut = cut < finding->cut ? cut : finding->cut;
}

/* The last character before a word that is no blank and no quote, or zero. */
static char before(const struct text *text, const char *word)
{
    while (word > text->begin && (is_blank(word[-1]) || is_one_of(word[-1], "\"'`\\")))
        word--;
    return word > text->begin ? word[-1] : '\0';
}

/* A name, and what is around it. */
struct place {
    const char *shown, *end; /* behind the letters of its word, and behind the word */
    const char *value;       /* behind closing quotes and blanks */
    char joint;              /* what is there, or zero */
    bool is_apart;           /* blanks alone are between word and value */
    bool is_joined;          /* by = or the like */
    bool is_value, is_file;  /* the word is a value itself, or the name of a file */
};

static struct place look_around(const struct text *text, const char *word, const char *behind)
{
    const char *shown = behind, *end;
    while (shown < text->end && (is_letter(*shown) || is_one_of(*shown, "_-.")))
        shown++;
    for (end = shown; end < text->end && is_in_name(*end);)
        end++;
    const char *closed = skip(text, end, "\"'`\\]"), *value = skip(text, closed, " \t\r\n");
    char joint = value < text->end ? *value : '\0';
    return (struct place){
        .shown = shown,
        .end = end,
        .value = value,
        .joint = joint,
        .is_joined = is_one_of(joint, "=:") || (joint == '/' && value == end),
        .is_apart = closed == end && value > end,
        .is_value = is_one_of(before(text, word), "=:,([{"),
        .is_file = (word > text->begin + 1 && word[-1] == '/') ||
                   memchr(behind, '.', (size_t)(end - behind)),
    };
}

/* Decides what the name hides that is a part of `word` and ends before `behind`. Returns where the
 * word ends. */
static const char *judge(const struct text *text, const char *word, const char *behind,
                         bool is_program, struct finding *finding)
{
    struct place at = look_around(text, word, behind);
    bool is_before_value = at.is_apart && at.joint && (!at.is_value || word >= finding->cut);
    finding->is_found = true;
    if (at.is_joined) {
        const char *value = skip(text, at.value, "=:/>\"'`\\ \t");
        hide_from(finding, value);
        finding->awaits_argument |= value == text->end;
    } else if (is_before_value)
        hide_from(finding, at.shown < at.end ? at.shown : at.value);
    else if (at.joint || at.is_value) {
        finding->is_whole = true;
        finding->awaits_argument |= !at.joint;
    } else if (is_program || !at.is_file) {
        finding->is_whole |= word > text->begin && word < finding->cut;
        finding->awaits_argument = true;
        hide_from(finding, at.shown);
    }
    return at.end;
}

/* Whether a secret may be in another place than behind its name: in a pipe, a variable, a call. */
static bool is_code(const struct text *text)
{
    return has_one_of(text, "([|<>`$\n") || (has_one_of(text, ";&") && has_one_of(text, " \t\"'"));
}

/* Whether a word named "value" is behind `at` and has a value: {"value": "x", "secret": true}. */
static bool gives_value(const struct text *text, const char *at)
{
    const char *behind = match(text, at, "_value_");
    behind = behind ? skip(text, behind, "\"'`\\ \t") : text->end;
    return behind < text->end && is_one_of(*behind, "=:");
}

static struct finding search(const struct text *text)
{
    struct finding finding = {.cut = text->end};
    bool has_value = false;
    for (const char *at = text->begin, *word = at, *behind; at < text->end;) {
        if (!is_in_name(*at))
            word = ++at;
        else if ((behind = match_one(text, at, HARMLESS)))
            at = behind;
        else if (at == word && (behind = match_one(text, at, PROGRAMS)))
            at = judge(text, word, behind, true, &finding);
        else if ((behind = match_one(text, at, NAMES)))
            at = judge(text, word, behind, false, &finding);
        else
            has_value |= gives_value(text, at++);
    }
    if (finding.is_found && (has_value || is_code(text)))
        finding.is_whole = true;
    if (finding.is_whole)
        finding.cut = text->begin;
    return finding;
}

/* Output */

struct output {
    char *to;
    size_t bytes, used;
};

static void put(struct output *output, const char *from, const char *end)
{
    size_t room = output->bytes - 1 - output->used, length = (size_t)(end - from);
    length = length < room ? length : room;
    memcpy(output->to + output->used, from, length);
    output->used += length;
    output->to[output->used] = '\0';
}

static void put_mask(struct output *output)
{
    static const char MASK[] = SECRETS_MASK;
    put(output, MASK, MASK + sizeof MASK - 1);
}

/* Words that look random */

static bool is_path_or_mask(const char *at, const char *end)
{
    bool is_path = *at == '/' ? end - at > 1 && at[1] != '/' : is_one_of(*at, ".~");
    return is_path || (end - at > 1 && *at == '0' && at[1] == 'x');
}

struct tally {
    size_t same, digits, run;              /* of the run of letters and digits */
    size_t length, turns, small, capitals; /* of the word */
};

static void count(struct tally *tally, char last, char now)
{
    bool is_turn = is_lower(last) ? is_upper(now) : is_digit(last) && is_letter(now);
    bool is_same = (is_lower(now) && is_lower(last)) || (is_upper(now) && is_upper(last));
    tally->same = is_same ? tally->same + 1 : is_letter(now);
    tally->digits += is_digit(now);
    tally->run++;
    tally->length++;
    tally->turns += is_turn;
    tally->small += is_lower(now);
    tally->capitals += is_turn && is_upper(now);
}

static bool is_key(const struct tally *run)
{
    return run->same >= 24 || (run->run >= 20 && run->digits && run->digits < run->run);
}

/* Keys and tokens have long runs of letters and digits, or many turns: a letter behind a digit, a
 * capital behind a small letter. Local paths and hexadecimal masks of cores are shown. */
static bool is_random(const char *at, const char *end)
{
    struct tally all = {0};
    if (is_path_or_mask(at, end))
        return false;
    for (char last = '\0'; at < end; last = *at++) {
        if (!is_letter(*at) && !is_digit(*at)) {
            all.same = all.digits = all.run = 0;
            continue;
        }
        count(&all, last, *at);
        if (is_key(&all))
            return true;
    }
    return all.small && all.capitals && all.length >= 16 && all.turns >= 5 &&
           6 * all.turns >= all.length;
}

static void put_random(struct output *output, const char *at, const char *end)
{
    for (const char *word = at; at < end; word = at) {
        while (at < end && (is_letter(*at) || is_digit(*at) || is_one_of(*at, "+/_.~-")))
            at++;
        if (at > word && is_random(word, at))
            put_mask(output);
        else
            put(output, word, at == word ? ++at : at);
    }
}

/* URLs */

/* A word of a text, without blanks and quotes. A password is behind a colon, or in a URL. */
static void put_word(struct output *output, const char *at, const char *end)
{
    const char *scheme = memmem(at, (size_t)(end - at), "://", 3);
    const char *first = memchr(at, '@', (size_t)(end - at));
    bool is_url = first && scheme && scheme < first;
    if (is_url || (first && memchr(at, ':', (size_t)(first - at)))) {
        put_random(output, at, is_url ? scheme + 3 : at);
        put_mask(output);
        at = memrchr(at, '@', (size_t)(end - at));
    }
    const char *query = scheme ? memchr(at, '?', (size_t)(end - at)) : NULL;
    put_random(output, at, query ? query + 1 : end);
    if (query)
        put_mask(output);
}

static void put_text(struct output *output, const struct text *text, const struct finding *finding)
{
    for (const char *at = text->begin, *word = at; at < finding->cut; word = at) {
        while (at < finding->cut && !is_blank(*at) && !is_quote(*at))
            at++;
        put_word(output, word, at);
        for (word = at; at < finding->cut && (is_blank(*at) || is_quote(*at));)
            at++;
        put(output, word, at);
    }
    if (finding->cut < text->end)
        put_mask(output);
}

bool secrets_named(const char *name, size_t length)
{
    return search(&(struct text){name, name + length}).is_found;
}

void secrets_mask_value(const char *name, size_t length, const char *value, char *to, size_t bytes)
{
    struct output output = {.to = to, .bytes = bytes};
    struct text text = {value, value + strlen(value)};
    struct finding finding = search(&text);
    put(&output, value, value);
    if (secrets_named(name, length))
        put_mask(&output);
    else
        put_text(&output, &text, &finding);
}

/* Arguments */

/* Whether this is another option, not the value of the one before. */
static bool is_option(const struct text *argument)
{
    const char *letters = skip(argument, argument->begin, "-"), *at = letters;
    while (at < argument->end && (is_lower(*at) || is_one_of(*at, "-_.")))
        at++;
    return letters > argument->begin && at > letters && (at == argument->end || *at == '=');
}

void secrets_mask_arguments(const char *arguments, size_t length, char *to, size_t bytes)
{
    static const char BLANK[] = " ";
    enum { NONE, TO_OPTION, ALL } hidden = NONE;
    struct output output = {.to = to, .bytes = bytes};
    bool is_behind_option = false;
    put(&output, arguments, arguments);
    for (const char *at = arguments, *end = at + length; at < end;) {
        struct text text = {at, at + strnlen(at, (size_t)(end - at))};
        struct finding finding = {.cut = at};
        if (hidden == NONE || (hidden == TO_OPTION && is_option(&text))) {
            finding = search(&text);
            bool is_of_option = *at == '-' || is_behind_option;
            hidden = !finding.awaits_argument ? NONE : is_of_option ? TO_OPTION : ALL;
        }
        put_text(&output, &text, &finding);
        is_behind_option = *at == '-';
        at = text.end + 1;
        if (at <= end)
            put(&output, BLANK, BLANK + 1);
    }
}

/* Files */

/* Whether a line does not belong to the one before: it begins with a name and a value, or with a
 * number and more. */
static bool is_item(const struct text *line)
{
    const char *behind = skip(line, line->begin, "0123456789"), *at = skip(line, behind, "\"'");
    if (behind > line->begin && behind < line->end && is_blank(*behind))
        return true;
    while (at < line->end && is_in_name(*at))
        at++;
    const char *joint = skip(line, at, " \t\"'");
    return at > line->begin && joint < line->end &&
           (*joint == ':' || (*joint == '=' && joint + 1 < line->end && joint[1] != '='));
}

void secrets_mask_lines(const char *text, size_t length, char *to, size_t bytes)
{
    struct output output = {.to = to, .bytes = bytes};
    bool is_hiding = false, is_masked = false, is_closed = false;
    put(&output, text, text);
    for (const char *at = text, *end = text + length; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct text line = {at, newline ? newline : end};
        struct finding finding = {.cut = at};
        at = newline ? newline + 1 : end;
        if (!is_hiding || (is_closed && is_item(&line))) {
            finding = search(&line);
            if (finding.is_whole && *line.begin != '#' && *line.begin != ';') {
                output.used = 0;
                put_mask(&output);
                return;
            }
            is_hiding = finding.awaits_argument || finding.cut < line.end;
            is_closed = !has_one_of(&line, "\"'{\\");
        } else if (is_masked)
            continue;
        is_masked = finding.cut < line.end;
        put_text(&output, &line, &finding);
        put(&output, line.end, at);
    }
}
