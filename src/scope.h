/* Which library a caller is bound to: where the dynamic linker would have found a function for it without us. */
#ifndef COMMPROF_SCOPE_H
#define COMMPROF_SCOPE_H

#include <dlfcn.h>
#include <stdbool.h>

/* Our own load address, the identity of an object. */
void *scope_of_us(void);

/* The object that defines `symbol` when looked up through `handle`, unless that is us. */
bool scope_definer(void *handle, const char *symbol, Dl_info *info);

/* The one in the scope of a caller's own object and its dependencies (Python loads libraries privately: RTLD_NEXT finds nothing). */
bool scope_of_caller(const Dl_info *caller, const char *symbol, Dl_info *found);

/* Any loaded object that defines `symbol` itself, with `part` in its file's name (in lower or upper case). */
bool scope_anywhere(const char *part, const char *symbol, Dl_info *found);

#endif
