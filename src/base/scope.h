/* Finds the library that a caller is bound to: the one in which the dynamic linker would have found
 * a function without us. */
#ifndef COMMPROF_SCOPE_H
#define COMMPROF_SCOPE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

/* This library's load address. Load addresses identify objects. */
void *scope_of_us(void);

/* Whether an address is in this library. */
bool scope_is_us(const void *address);

/* The object that defines `symbol` when looked up through `handle`; false if it is this library. */
bool scope_definer(void *handle, const char *symbol, Dl_info *info);

/* The object that defines `symbol` among the caller's own object and its dependencies. (RTLD_NEXT
 * does not find libraries that are loaded privately, as Python does.) */
bool scope_of_caller(const Dl_info *caller, const char *symbol, Dl_info *found);

/* The address range of a loaded object. dladdr also finds the object of an address, but searches
 * all its symbols (10 to 50 us in an MPI library). */
struct scope_object {
    uintptr_t begin, end; /* both 0: no object was found */
    bool is_program;      /* it is never unloaded */
};

struct scope_object scope_object_of(const void *address);

static inline bool scope_object_has(const struct scope_object *object, const void *address)
{
    return (uintptr_t)address - object->begin < object->end - object->begin;
}

/* Visits the names of the functions that the program itself imports. */
void scope_imports(void (*visit)(const char *name, void *data), void *data);

/* Any loaded object that itself defines `symbol`, has `part` in its file name (case is ignored),
 * and that `accepts` (NULL: any). */
typedef bool scope_choice(const Dl_info *definition);
bool scope_anywhere(const char *part, const char *symbol, scope_choice *accepts, Dl_info *found);

/* The same in the namespaces that dlmopen has created. */
bool scope_in_other_namespaces(const char *part, const char *symbol, scope_choice *accepts,
                               Dl_info *found);

/* One function that a loaded object imports. `bound_to` is in the object itself until its first
 * call, if it is bound lazily. */
struct scope_import {
    const char *path; /* of the object; "": the program */
    const char *name;
    const void *bound_to;
};

/* Visits the imports of all objects that are linked with a library with `part` in its name, until a
 * visit returns true. A visit must not call dlopen, dlsym or dlclose. */
bool scope_bindings(const char *part, bool (*visit)(const struct scope_import *import, void *data),
                    void *data);

#endif
