/* The libraries preloaded into a program: ours first, by a path that the loader can read. */
#ifndef COMMPROF_PRELOAD_H
#define COMMPROF_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

/* The path of `library` for LD_PRELOAD: its own, or, since the loader splits the list at blanks and
 * colons and expands $ORIGIN, one through a link in a private folder of this user. The link stays:
 * the job may start programs until its end. Returns NULL, or why there is no such path. */
const char *preload_path(const char *library, char *path, size_t bytes);

/* LD_PRELOAD with `library` before all others, but after the runtimes of sanitizers that somebody
 * has preloaded. Other entries of the library's name are dropped. `before` may be NULL. The caller
 * frees it; NULL: no memory. */
char *preload_first(const char *before, const char *library);

/* Let our library come before the runtime of AddressSanitizer, which ends a program otherwise: set
 * this option in ASAN_OPTIONS. Preloading the runtime instead would put it into all programs that
 * this one starts, and those that leak memory (Python, Perl) would fail. */
#define PRELOAD_ASAN_OPTION "verify_asan_link_order"
void preload_before_asan(void);

bool preload_is_sanitizer(const char *library);

#endif
