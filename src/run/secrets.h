/* Masks likely secrets in command lines and environment variables: the value of an option or variable whose name suggests a secret
 * (--wandb-api-key=x, --password x, HF_TOKEN=x), and user and password in a URL (postgres://u:p@host). SECRETS_MASK replaces them. */
#ifndef COMMPROF_SECRETS_H
#define COMMPROF_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#define SECRETS_MASK "***"

/* Whether a name of this length suggests a secret: by last word (api-key, HF_TOKEN, dbPw) or a part (AWS_SECRET_ACCESS_KEY, PGPASSWORD). */
bool secrets_named(const char *name, size_t length);

/* Write the words of `text` to `masked`, with secrets masked and blanks between. Words in `text` end with `separator` (a zero byte: a
 * process's arguments; a blank: one line). The result is truncated to `bytes`. */
void secrets_mask(const char *text, size_t text_bytes, char separator, char *masked, size_t bytes);

#endif
