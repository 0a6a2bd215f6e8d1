/* Masks likely secrets in what is recorded about a job: all that follows a name that suggests one,
 * to the end of its argument, line or value; words that look random; user and query of a URL.
 * SECRETS_MASK replaces them. Too much is masked rather than too little.
 *
 * All functions write at most `bytes` bytes, with the final zero. */
#ifndef COMMPROF_SECRETS_H
#define COMMPROF_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#define SECRETS_MASK "***"

/* Whether all of a value with this name is a secret. */
bool secrets_named(const char *name, size_t length);

/* The arguments of a process, each but the last terminated by a zero byte, with blanks between. */
void secrets_mask_arguments(const char *arguments, size_t length, char *to, size_t bytes);

/* The value of a variable or of another setting with a name. */
void secrets_mask_value(const char *name, size_t length, const char *value, char *to, size_t bytes);

/* The text of a file of settings. A line that begins with another name is shown again. */
void secrets_mask_lines(const char *text, size_t length, char *to, size_t bytes);

#endif
