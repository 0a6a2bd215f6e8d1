/* Masks likely secrets in what is recorded about a job, by the structure of the text: a name that
 * suggests a secret, joined to a value, in any list, JSON, header, query string, quoted command or
 * option (HF_TOKEN=x, "password": "x", X-Api-Key: x, --password x); user and password of a URL;
 * keys and tokens of well-known services. SECRETS_MASK replaces them. Where a text leaves open
 * where a secret ends, too much is masked rather than too little.
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

/* The text of a file of settings, where a value without quotes ends with its line at the latest. */
void secrets_mask_lines(const char *text, size_t length, char *to, size_t bytes);

#endif
