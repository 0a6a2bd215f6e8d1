/* Which names suggest that their value is a secret, and which values are secrets by their shape. */
#ifndef COMMPROF_SECRET_NAMES_H
#define COMMPROF_SECRET_NAMES_H

#include <stddef.h>

enum secrecy { NOT_SECRET, SECRET_UNLESS_NUMBER, SECRET };

/* A name is read as words, however they are joined: api-key, API_KEY, apiKey and api.key2 have the
 * words "api key". hf_tokens is SECRET_UNLESS_NUMBER: it may be a count. */
enum secrecy secret_names_judge(const char *name, size_t length);

/* How many bytes of `text`, from its first on, are a key or a token in the form of a well-known
 * service (ghp_..., AKIA..., a JWT, a private key in PEM); 0: none. */
size_t secret_names_shape(const char *text, size_t length);

#endif
