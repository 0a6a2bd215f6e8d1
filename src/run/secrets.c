/* One pass reads a text as names, joints, quotes and brackets, whatever it is made of, with a stack
 * of the quotes and brackets that are open. A name that suggests a secret is followed by a joint
 * and a value:
 *
 *     HF_TOKEN=x   "password": "x"   X-Api-Key: x   --password x   <password>x</password>
 *
 * A value ends before what closes the text or bracket around it, or earlier; that is its extent:
 *
 *     TEXT       at the start of its text (an argument, a line, a quoted text): not earlier
 *     ITEM       in a list or a header: before the next item that has a name and the same joint
 *     WORD       of a shell: before a blank
 *     QUOTED     a quoted text or brackets in JSON, Python, ...: behind them
 *     PARAMETER  of a URL: before & or a blank
 *     ELEMENT    of XML: before </
 *
 * Its own quotes and brackets belong to it. A quote inside n quotes has 2^n - 1 backslashes before
 * it in JSON and shells, not in all languages. Unless it is sure that a quote ends the value,
 * everything to the end of the text is masked. No part of a text is read again and again: its
 * length decides how long it takes. */
#include "secrets.h"

#include "secret_names.h"

#include <string.h>
#include <strings.h>

enum { STACK_ENTRIES = 32 };

/* A quote or bracket that is open: what closes it. */
struct closer {
    char mark;
    size_t escapes; /* backslashes before the quote */
};

struct scanner {
    const char *begin, *at, *end;
    const char *no_user_until; /* no user:password@ ends before it */
    const char *start;         /* a name here has the rest of its text as its value */
    bool has_lines;
    enum secrecy awaited;   /* by an option at the end of an argument: the next argument */
    enum secrecy announced; /* by a name without value: {"name": "HF_TOKEN", "value": "x"} */
    struct closer open[STACK_ENTRIES];
    int depth;
    char *masked;
    size_t bytes, used;
};

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

static bool is_in_name(char c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || is_one_of(c, "_-.");
}

static void put(struct scanner *s, const char *text, size_t length)
{
    size_t room = s->bytes - 1 - s->used;
    length = length < room ? length : room;
    memcpy(s->masked + s->used, text, length);
    s->used += length;
}

static void pass(struct scanner *s, const char *to)
{
    put(s, s->at, (size_t)(to - s->at));
    s->at = to;
}

static void mask(struct scanner *s, const char *to)
{
    put(s, SECRETS_MASK, strlen(SECRETS_MASK));
    s->at = to;
}

static size_t length_of_name(const struct scanner *s, const char *at)
{
    const char *end = at;
    while (end < s->end && is_in_name(*end))
        end++;
    return (size_t)(end - at);
}

static bool is_word(const char *text, size_t length, const char *const words[])
{
    for (; *words; words++)
        if (strlen(*words) == length && strncasecmp(text, *words, length) == 0)
            return true;
    return false;
}

static const char *skip_blanks(const struct scanner *s, const char *at)
{
    bool is_within_line = s->has_lines && !s->depth;
    while (at < s->end && is_blank(*at) && !(is_within_line && *at == '\n'))
        at++;
    return at;
}

/* Quotes and brackets */

static size_t backslashes_at(const struct scanner *s, const char *at)
{
    const char *end = at;
    while (end < s->end && *end == '\\')
        end++;
    return (size_t)(end - at);
}

/* The quote behind the backslashes at `at`, or NULL. */
static const char *quote_at(const struct scanner *s, const char *at)
{
    at += backslashes_at(s, at);
    return at < s->end && is_quote(*at) ? at : NULL;
}

static bool closes(struct closer closer, char quote, size_t escapes)
{
    return closer.mark == quote && escapes % (2 * (closer.escapes + 1)) == closer.escapes;
}

/* The entry of the stack that is closed here, or -1. */
static int closed_by(const struct scanner *s, char mark, size_t escapes)
{
    int entry = s->depth - 1;
    while (entry >= 0 && !closes(s->open[entry], mark, escapes))
        entry--;
    return entry;
}

static void open_mark(struct scanner *s, char mark, size_t escapes)
{
    if (s->depth < STACK_ENTRIES)
        s->open[s->depth++] = (struct closer){mark, escapes};
}

static char closing_bracket(char c)
{
    static const char OPENING[] = "{[(", CLOSING[] = "}])";
    return is_one_of(c, OPENING) ? CLOSING[strchr(OPENING, c) - OPENING] : '\0';
}

/* An apostrophe within a word opens nothing. */
static void scan_quote(struct scanner *s, const char *quote)
{
    size_t escapes = (size_t)(quote - s->at);
    int closed = closed_by(s, *quote, escapes);
    bool is_within_word = s->at > s->begin && is_in_name(s->at[-1]);
    pass(s, quote + 1);
    if (closed >= 0)
        s->depth = closed;
    else if (!is_within_word) {
        open_mark(s, *quote, escapes);
        s->start = s->at;
    }
}

static void scan_bracket(struct scanner *s)
{
    char closing = closing_bracket(*s->at);
    int closed = closing ? -1 : closed_by(s, *s->at, 0);
    if (closing)
        open_mark(s, closing, 0);
    else if (closed >= 0)
        s->depth = closed;
    pass(s, s->at + 1);
}

/* Behind the quoted text that begins with this quote. NULL: it does not end before the text around
 * it, or shells and languages differ in where it does. */
static const char *behind_quoted(const struct scanner *s, const char *quote, size_t escapes)
{
    const struct closer own = {*quote, escapes};
    size_t backslashes = 0;
    for (const char *at = quote + 1; at < s->end; at++) {
        if (*at == '\\') {
            backslashes++;
            continue;
        }
        if (closes(own, *at, backslashes))
            return backslashes == escapes ? at + 1 : NULL;
        if (*at == '\'' && own.mark == '\'')
            return NULL;
        if (is_quote(*at) && closed_by(s, *at, backslashes) >= 0)
            return NULL;
        backslashes = 0;
    }
    return NULL;
}

/* Values */

enum extent { WORD, QUOTED, PARAMETER, ITEM, TEXT, ELEMENT };

struct value {
    const char *at;
    char before, joint; /* before its name, and behind it */
    bool is_at_start;   /* its name */
    enum extent extent;
};

/* Whether a name with this joint follows: the next item of a list. */
static bool begins_item(const struct scanner *s, const char *at, char joint)
{
    at = skip_blanks(s, at);
    const char *quote = at < s->end ? quote_at(s, at) : NULL;
    at = quote ? quote + 1 : at;
    size_t length = length_of_name(s, at);
    at += length;
    quote = quote_at(s, at);
    at = skip_blanks(s, quote ? quote + 1 : at);
    return length && at < s->end && *at == joint;
}

static bool ends_here(const struct scanner *s, const char *at, const struct value *value)
{
    switch (value->extent) {
    case WORD:
        return is_blank(*at);
    case QUOTED:
        return at > value->at && (is_blank(*at) || is_one_of(*at, ",;&<"));
    case PARAMETER:
        return is_blank(*at) || *at == '&';
    case ELEMENT:
        return at + 1 < s->end && at[0] == '<' && at[1] == '/';
    case ITEM:
        if (*at == ',' || (*at == ';' && value->joint == '='))
            return begins_item(s, at + 1, value->joint);
        break;
    case TEXT:
        break;
    }
    return s->has_lines && *at == '\n';
}

/* Whether this is what closes the innermost quote. */
static bool is_closing(const struct scanner *s, const char *at, const char *quote)
{
    const struct closer *entry = s->open + s->depth;
    while (entry > s->open && !is_quote(entry[-1].mark))
        entry--;
    return entry > s->open && entry[-1].mark == *quote && entry[-1].escapes == (size_t)(quote - at);
}

/* Whether a word goes on behind a quote. 'it'"'"'s' is a quote within quotes in a shell. */
static bool joins(const struct scanner *s, const char *quote)
{
    const char *behind = quote + 1, *next = behind < s->end ? quote_at(s, behind) : NULL;
    const char *third = next && next + 1 < s->end ? quote_at(s, next + 1) : NULL;
    if (next)
        return !is_closing(s, behind, next) || (third && *third == *quote && *next != *quote);
    return behind < s->end && (is_in_name(*behind) || *behind == '$');
}

/* Whether a quote surely ends a value. One directly before the value does not if more follows. */
static bool ends_value(const struct scanner *s, const char *at, const char *quote, bool is_empty)
{
    const char *behind = quote + 1;
    bool is_last = behind == s->end || is_blank(*behind) || is_one_of(*behind, ",;}])");
    return is_closing(s, at, quote) && (is_last || !is_empty) && !joins(s, quote);
}

static const char *find_end(const struct scanner *s, const struct value *value)
{
    int brackets = 0;
    for (const char *at = value->at; at < s->end; at++) {
        const char *quote = quote_at(s, at);
        if (quote) {
            size_t escapes = (size_t)(quote - at);
            if (closed_by(s, *quote, escapes) >= 0)
                return !brackets && ends_value(s, at, quote, at == value->at) ? at : s->end;
            at = behind_quoted(s, quote, escapes);
            if (!at || joins(s, at - 1))
                return s->end;
            at--;
        } else if (*at == '\\')
            at += backslashes_at(s, at); /* what they escape belongs to the value */
        else if (closing_bracket(*at))
            brackets++;
        else if (brackets)
            brackets -= is_one_of(*at, "}])");
        else if (ends_here(s, at, value) || (is_one_of(*at, "}])") && closed_by(s, *at, 0) >= 0))
            return at;
    }
    return s->end;
}

static size_t indentation(const struct scanner *s, const char *line)
{
    const char *at = line;
    while (at < s->end && is_one_of(*at, " \t"))
        at++;
    return (size_t)(at - line);
}

/* YAML: the lines below that are indented more. */
static const char *find_end_of_block(const struct scanner *s, const char *newline)
{
    const char *line = s->at;
    while (line > s->begin && line[-1] != '\n')
        line--;
    size_t indented = indentation(s, line);
    for (const char *next; newline && newline + 1 < s->end; newline = next) {
        const char *below = newline + 1;
        next = memchr(below, '\n', (size_t)(s->end - below));
        if (indentation(s, below) <= indented && *below != '\n')
            return newline;
    }
    return s->end;
}

static bool begins_with_number(const char *at, const char *end)
{
    if (at < end && is_quote(*at))
        at++;
    if (at == end || !is_digit(*at))
        return false;
    while (at < end && (is_digit(*at) || is_one_of(*at, "._+-eEkKmMgG")))
        at++;
    return at == end || is_blank(*at) || is_quote(*at) || is_one_of(*at, ",;&}])");
}

/* Another option, after one that has no value: --use-token --lr 1. A secret may begin with dashes,
 * too, but has other characters than small letters. */
static bool is_option(const char *at, const char *end)
{
    const char *letter = at + 2;
    if (end - at < 3 || at[0] != '-' || at[1] != '-')
        return false;
    while (letter < end && ((*letter >= 'a' && *letter <= 'z') || is_one_of(*letter, "-_.")))
        letter++;
    return letter > at + 2 && (letter == end || *letter == '=');
}

static bool takes_argument(const char *name, size_t length)
{
    static const char *const BEARER[] = {"bearer", NULL};
    return *name == '-' || is_word(name, length, BEARER);
}

static bool begins_with(const struct scanner *s, const char *at, const char *what)
{
    size_t length = strlen(what);
    return (size_t)(s->end - at) >= length && strncasecmp(at, what, length) == 0;
}

/* The joint behind a name, and what is behind the joint; false: there is none. A quote and a
 * bracket may close the name: environ["name"] = x. */
static bool find_joint(const struct scanner *s, const char *name, struct value *value)
{
    size_t length = length_of_name(s, name);
    const char *at = name + length;
    while (at < s->end && is_one_of(*at, "\\\"'`]"))
        at++;
    bool is_closed = at > name + length;
    const char *behind = skip_blanks(s, at);
    char next = behind < s->end ? *behind : '\0';
    bool is_encoded = begins_with(s, behind, "%3D") || begins_with(s, behind, "%3A");
    bool is_colon = next == ':' && !begins_with(s, behind, "::") && !begins_with(s, behind, "://");
    bool is_in_path = value->before == '/' && behind + 1 < s->end && !is_blank(behind[1]);
    value->joint = next;
    value->at = behind + 1;
    if (is_encoded) {
        value->joint = '=';
        value->at = behind + 3;
    } else if (next == '=' || (is_colon && !is_in_path))
        while (value->at < s->end && is_one_of(*value->at, "=>"))
            value->at++;
    else if (takes_argument(name, length) && behind > at && next) {
        value->joint = ' ';
        value->at = behind;
    } else
        return (next == '>' && value->before == '<') || (next == ',' && *name == '-' && is_closed);
    return true;
}

static enum extent extent_of(const struct scanner *s, const struct value *value)
{
    char joint = value->joint, last = value->at[-1];
    bool is_header = joint == ':' && is_blank(last);
    bool is_in_list = is_one_of(value->before, ",;([{|");
    bool is_of_shell = joint == ' ' || (joint == '=' && last == '=' && !is_in_list);
    if (joint == '>')
        return ELEMENT;
    if (quote_at(s, value->at) || (value->at < s->end && closing_bracket(*value->at)))
        return is_of_shell ? WORD : QUOTED;
    if (joint == ' ' || joint == ',')
        return WORD;
    if (value->is_at_start)
        return TEXT;
    if (is_one_of(value->before, "?&#"))
        return PARAMETER;
    return is_header || is_in_list ? ITEM : WORD;
}

/* The end of a value; with the next word if that may be the secret, in "Basic x" and "-token x". */
static const char *find_end_of_words(const struct scanner *s, struct value value)
{
    static const char *const SCHEMES[] = {"bearer", "basic", "token", "digest", "negotiate", NULL};
    const char *begin = value.at, *end = find_end(s, &value);
    size_t length = (size_t)(end - begin);
    bool may_continue = is_word(begin, length, SCHEMES);
    if (length && *begin == '-' && !is_option(begin, end))
        may_continue = secret_names_judge(begin, length);
    value.at = may_continue ? skip_blanks(s, end) : end;
    return value.at > end ? find_end(s, &value) : end;
}

static void mask_value(struct scanner *s, const char *end)
{
    const char *quote = quote_at(s, s->at);
    size_t around = quote ? (size_t)(quote + 1 - s->at) : 0;
    const char *behind = quote ? behind_quoted(s, quote, around - 1) : NULL;
    if (!behind || behind != end) {
        mask(s, end);
        return;
    }
    pass(s, s->at + around);
    mask(s, end - around);
    pass(s, end);
}

/* YAML: no value on this line, or "|" or ">" with modifiers. */
static bool begins_block(const struct scanner *s, const char *at)
{
    if (!s->has_lines || s->depth)
        return false;
    if (at < s->end && is_one_of(*at, "|>"))
        while (at < s->end && is_one_of(*at, "|>+-123456789 "))
            at++;
    if (at < s->end && *at == '\r')
        at++;
    return at < s->end && *at == '\n';
}

static void scan_value(struct scanner *s, struct value *value, enum secrecy secrecy)
{
    const char *end;
    if (value->joint != ' ' && begins_block(s, value->at)) {
        const char *newline = memchr(value->at, '\n', (size_t)(s->end - value->at));
        end = find_end_of_block(s, newline);
        if (end == newline)
            return; /* no value */
    } else
        end = find_end_of_words(s, *value);
    if (secrecy == SECRET_UNLESS_NUMBER && begins_with_number(value->at, end))
        return;
    if (is_one_of(value->joint, " ,") && is_option(value->at, end))
        return;
    pass(s, value->at);
    mask_value(s, end);
}

/* Names */

/* A token of a well-known service in a name, or behind it. */
static bool scan_shape(struct scanner *s, size_t length)
{
    for (const char *at = s->at, *behind = at + length; at < behind; at++) {
        bool is_inside = at > s->at && is_in_name(at[-1]) && !is_one_of(at[-1], "_-.");
        size_t token = is_inside ? 0 : secret_names_shape(at, (size_t)(s->end - at));
        if (!token)
            continue;
        pass(s, at);
        mask(s, at + token);
        return true;
    }
    return false;
}

/* user:password@host, without a scheme before it. */
static bool scan_user(struct scanner *s, size_t length)
{
    const char *at = s->at + length, *host = NULL;
    if (at < s->no_user_until || at + 1 >= s->end || at[0] != ':' || is_one_of(at[1], ":/@"))
        return false;
    if (*s->at == '-' || (s->at > s->begin && s->at[-1] == '/'))
        return false;
    for (; at + 1 < s->end && !is_blank(*at) && !is_quote(*at) && !is_one_of(*at, ",;"); at++)
        if (*at == '@' && (is_in_name(at[1]) || at[1] == '['))
            host = at;
    if (host)
        mask(s, host);
    else
        s->no_user_until = at;
    return host;
}

static void scan_joint(struct scanner *s, const char *to)
{
    while (s->at < to) {
        const char *quote = quote_at(s, s->at);
        if (quote && quote < to)
            scan_quote(s, quote);
        else if (*s->at == ']')
            scan_bracket(s);
        else
            pass(s, s->at + 1);
    }
}

static bool ends_argument(const struct scanner *s)
{
    const char *at = s->at;
    while (at < s->end && (is_blank(*at) || is_quote(*at)))
        at++;
    return at == s->end;
}

static void scan_name(struct scanner *s)
{
    static const char *const VALUE[] = {"value", NULL};
    const char *name = s->at;
    size_t length = length_of_name(s, name);
    struct value value = {.before = '\0', .is_at_start = name == s->start};
    if (name > s->begin)
        value.before = name[-1];
    enum secrecy secrecy = secret_names_judge(name, length);
    if (!secrecy && value.before == '\\') /* "\npassword": a line break */
        secrecy = secret_names_judge(name + 1, length - 1);
    if (scan_shape(s, length) || (!secrecy && scan_user(s, length)))
        return;
    if (!secrecy && s->announced && is_word(name, length, VALUE))
        secrecy = s->announced;
    bool has_value = secrecy && find_joint(s, name, &value);
    if (secrecy)
        s->announced = has_value ? NOT_SECRET : secrecy;
    pass(s, name + length);
    if (has_value) {
        scan_joint(s, value.at);
        value.at = skip_blanks(s, value.at);
        value.extent = extent_of(s, &value);
        scan_value(s, &value, secrecy);
    } else if (value.is_at_start && s->at < s->end && *s->at == '=')
        s->start = s->at + 1;
    else if (secrecy && takes_argument(name, length) && ends_argument(s))
        s->awaited = secrecy;
}

/* URLs */

static bool ends_url(const struct scanner *s, const char *at)
{
    return is_blank(*at) || (is_quote(*at) && closed_by(s, *at, 0) >= 0);
}

/* Whether the part before the path has a colon and no port after it: it is a user, and the first
 * part of a password that has a slash. */
static bool has_password(const char *at, const char *path)
{
    const char *colon = *at == '[' ? NULL : memchr(at, ':', (size_t)(path - at));
    if (!colon || path[-1] == ':') /* of the next URL */
        return false;
    for (at = colon + 1; at < path && *at >= '0' && *at <= '9';)
        at++;
    return at < path || path - colon > 6;
}

/* Behind "://": user and password, which may have any characters. */
static void scan_url(struct scanner *s)
{
    pass(s, s->at + 3);
    const char *path = s->at;
    while (path < s->end && !ends_url(s, path) && !is_one_of(*path, "/?#"))
        path++;
    const char *host = memrchr(s->at, '@', (size_t)(path - s->at));
    if (!host && path > s->at && has_password(s->at, path))
        for (; path < s->end && !ends_url(s, path) && !begins_with(s, path, "://"); path++)
            host = *path == '@' ? path : host;
    if (host)
        mask(s, host);
}

/* Texts */

static bool is_encoded(const struct scanner *s)
{
    static const char HEX[] = "0123456789abcdefABCDEF";
    const char *at = s->at;
    return *at == '%' && s->end - at >= 3 && is_one_of(at[1], HEX) && is_one_of(at[2], HEX);
}

static void scan_text(struct scanner *s, const char *text, size_t length)
{
    s->begin = s->at = s->start = s->no_user_until = text;
    s->end = text + length;
    s->depth = 0;
    while (s->at < s->end && s->used + 1 < s->bytes) {
        const char *quote = quote_at(s, s->at);
        if (is_in_name(*s->at))
            scan_name(s);
        else if (quote)
            scan_quote(s, quote);
        else if (is_one_of(*s->at, "{}[]()"))
            scan_bracket(s);
        else if (begins_with(s, s->at, "://"))
            scan_url(s);
        else if (is_encoded(s))
            pass(s, s->at + 3);
        else if (*s->at == '\\')
            pass(s, s->at + backslashes_at(s, s->at));
        else {
            bool begins_line = s->has_lines && *s->at == '\n';
            bool is_at_start = begins_line || (is_blank(*s->at) && s->at == s->start);
            pass(s, s->at + 1);
            if (is_at_start)
                s->start = s->at;
        }
    }
}

static void finish(struct scanner *s)
{
    s->masked[s->used] = '\0';
}

bool secrets_named(const char *name, size_t length)
{
    return secret_names_judge(name, length) == SECRET;
}

/* Whether the value of a name is no secret. */
static bool is_harmless(enum secrecy secrecy, const char *value, size_t length)
{
    const char *end = value + length;
    return !secrecy || (secrecy == SECRET_UNLESS_NUMBER && begins_with_number(value, end));
}

void secrets_mask_arguments(const char *arguments, size_t length, char *to, size_t bytes)
{
    struct scanner s = {.masked = to, .bytes = bytes};
    for (const char *at = arguments, *end = at + length, *next; at < end; at = next) {
        enum secrecy secrecy = s.awaited;
        size_t argument = strnlen(at, (size_t)(end - at));
        next = at + argument + 1;
        s.awaited = NOT_SECRET;
        if (is_harmless(secrecy, at, argument) || is_option(at, at + argument))
            scan_text(&s, at, argument);
        else {
            mask(&s, at + argument);
            s.awaited = *at == '-' ? secret_names_judge(at, argument) : NOT_SECRET;
        }
        if (next <= end)
            put(&s, " ", 1);
    }
    finish(&s);
}

void secrets_mask_value(const char *name, size_t length, const char *value, char *to, size_t bytes)
{
    struct scanner s = {.masked = to, .bytes = bytes};
    size_t value_length = strlen(value);
    if (is_harmless(secret_names_judge(name, length), value, value_length))
        scan_text(&s, value, value_length);
    else
        mask(&s, value + value_length);
    finish(&s);
}

void secrets_mask_lines(const char *text, size_t length, char *to, size_t bytes)
{
    struct scanner s = {.masked = to, .bytes = bytes, .has_lines = true};
    scan_text(&s, text, length);
    finish(&s);
}
