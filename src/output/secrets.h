/* Hiding what looks like a secret in a command line or in the value of a variable: the value of an option or variable whose name says so
 * (--wandb-api-key=x, --password x, HF_TOKEN=x), and user and password in a URL (postgres://u:p@host). SECRETS_MASK takes its place. */
#ifndef COMMPROF_SECRETS_H
#define COMMPROF_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#define SECRETS_MASK "***"

/* Whether a name of this length means a secret: by its last word (api-key, HF_TOKEN, dbPw) or by a part (AWS_SECRET_ACCESS_KEY, PGPASSWORD). */
bool secrets_named(const char *name, size_t length);

/* The words of `text`, which end with `separator` (a zero byte: arguments of a process; a blank: one line), masked, with blanks between.
 * What does not fit in `masked` is cut. */
void secrets_mask(const char *text, size_t text_bytes, char separator, char *masked, size_t bytes);

#endif
