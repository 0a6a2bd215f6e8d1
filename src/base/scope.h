/* Which library a caller is bound to: where the dynamic linker would have found a function for it without us. */
#ifndef COMMPROF_SCOPE_H
#define COMMPROF_SCOPE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

/* Our own load address, the identity of an object. */
void *scope_of_us(void);

/* The object that defines `symbol` when looked up through `handle`, unless that is us. */
bool scope_definer(void *handle, const char *symbol, Dl_info *info);

/* The one in the scope of a caller's own object and its dependencies (Python loads libraries privately: RTLD_NEXT finds nothing). */
bool scope_of_caller(const Dl_info *caller, const char *symbol, Dl_info *found);

/* Where a loaded object lies. dladdr says whose an address is, too, but looks at all of the object's symbols (10 to 50 us in an MPI). */
struct scope_object {
    uintptr_t begin, end; /* both 0: none was found */
    bool is_program;      /* it is never unloaded */
};

struct scope_object scope_object_of(const void *address);

static inline bool scope_object_has(const struct scope_object *object, const void *address)
{
    return (uintptr_t)address - object->begin < object->end - object->begin;
}

/* Visits the names of the functions that the program itself is linked with. */
void scope_imports(void (*visit)(const char *name, void *data), void *data);

/* Any loaded object that defines `symbol` itself, with `part` in its file's name (in lower or upper case). */
bool scope_anywhere(const char *part, const char *symbol, Dl_info *found);

#endif
