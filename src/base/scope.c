#include "scope.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

void *scope_of_us(void)
{
    static void *base;
    Dl_info info;
    if (!base && dladdr((void *)scope_of_us, &info))
        base = info.dli_fbase;
    return base;
}

/* Defined by the linker. A comparison, because dlsym asks before any constructor has run. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

bool scope_is_us(const void *address)
{
    return (uintptr_t)address - (uintptr_t)__ehdr_start < (uintptr_t)_end - (uintptr_t)__ehdr_start;
}

bool scope_definer(void *handle, const char *symbol, Dl_info *info)
{
    void *address = dlsym(handle, symbol);
    return address && dladdr(address, info) && info->dli_fname && info->dli_fbase != scope_of_us();
}

bool scope_of_caller(const Dl_info *caller, const char *symbol, Dl_info *found)
{
    if (scope_object_of(caller->dli_fbase).is_program)
        return false; /* we come before its libraries */
    void *handle = dlopen(caller->dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return false;
    bool is_there = scope_definer(handle, symbol, found);
    dlclose(handle);
    return is_there;
}

static bool is_named(const char *path, const char *part)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && strcasestr(slash, part);
}

/* dl_iterate_phdr holds a lock of the loader that dlopen and dlsym take last. So its callbacks only
 * copy what they find; whoever called any of these functions in them could wait forever for a
 * thread that loads a library. */
struct scan {
    const char *part;
    unsigned skipped; /* so many objects with this name come before */
    ElfW(Addr) base;
    char path[900]; /* is on the stack of one of the job's threads: see docs/OVERHEAD.md */
};

static int copy_named(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    struct scan *scan = data;
    if (!is_named(object->dlpi_name, scan->part) || scan->skipped-- > 0)
        return 0;
    scan->base = object->dlpi_addr;
    snprintf(scan->path, sizeof scan->path, "%s", object->dlpi_name);
    return 1;
}

static bool defines(const struct scan *object, const char *symbol, scope_choice *accepts,
                    Dl_info *found)
{
    void *handle = dlopen(object->path, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return false;
    bool does = scope_definer(handle, symbol, found) &&
                (ElfW(Addr))found->dli_fbase == object->base && (!accepts || accepts(found));
    dlclose(handle);
    return does;
}

bool scope_anywhere(const char *part, const char *symbol, scope_choice *accepts, Dl_info *found)
{
    for (unsigned skipped = 0;; skipped++) {
        struct scan object = {.part = part, .skipped = skipped};
        if (!dl_iterate_phdr(copy_named, &object))
            return false;
        if (defines(&object, symbol, accepts, found))
            return true;
    }
}

/* Definition that glibc has in <link.h> since 2.35, where version 2 of r_debug chains the
 * namespaces. */
struct namespaces {
    struct r_debug debug;
    const struct namespaces *next;
};

/* The first object of a namespace is the one that was opened, and thus a handle to itself and its
 * dependencies. */
bool scope_in_other_namespaces(const char *part, const char *symbol, scope_choice *accepts,
                               Dl_info *found)
{
    const struct namespaces *first =
        (const struct namespaces *)&_r_debug; /* longer, from version 2 on */
    __asm__("" : "+r"(first));                /* the compiler knows the shorter one */
    const struct namespaces *next = first->debug.r_version >= 2 ? first->next : NULL;
    for (; next; next = next->next)
        if (next->debug.r_map && scope_definer(next->debug.r_map, symbol, found) &&
            is_named(found->dli_fname, part) && accepts(found))
            return true;
    return false;
}

static void take_segment(struct scope_object *object, ElfW(Addr) base, const ElfW(Phdr) * segment)
{
    uintptr_t begin = base + segment->p_vaddr, end = begin + segment->p_memsz;
    object->begin = object->end == 0 || begin < object->begin ? begin : object->begin;
    object->end = end > object->end ? end : object->end;
}

static struct scope_object object_of(const struct dl_phdr_info *info)
{
    struct scope_object object = {0};
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            take_segment(&object, info->dlpi_addr, &info->dlpi_phdr[i]);
    return object;
}

struct object_search {
    const void *address;
    struct scope_object object;
    bool is_later;
};

/* dl_iterate_phdr visits the program first. */
static int find_object(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct object_search *search = data;
    struct scope_object object = object_of(info);
    object.is_program = !search->is_later;
    search->is_later = true;
    if (!scope_object_has(&object, search->address))
        return 0;
    search->object = object;
    return 1;
}

struct scope_object scope_object_of(const void *address)
{
    struct object_search search = {.address = address};
    dl_iterate_phdr(find_object, &search);
    return search.object;
}

/* The parts of a dynamic section that list the imports. */
struct imports {
    const ElfW(Dyn) * dynamic;
    const char *names;
    const ElfW(Sym) * symbols;
    const ElfW(Rela) * relocations[2]; /* of the procedure linkage table, and the others */
    size_t bytes[2];
};

/* glibc stores absolute addresses here; others (musl) leave offsets from the load address. */
static const void *pointer_in(ElfW(Addr) base, const ElfW(Dyn) * entry)
{
    ElfW(Addr) value = entry->d_un.d_ptr;
    return (const void *)(value < base ? base + value : value);
}

static void take_entry(struct imports *imports, ElfW(Addr) base, const ElfW(Dyn) * entry)
{
    switch (entry->d_tag) {
    case DT_STRTAB:
        imports->names = pointer_in(base, entry);
        break;
    case DT_SYMTAB:
        imports->symbols = pointer_in(base, entry);
        break;
    case DT_JMPREL:
        imports->relocations[0] = pointer_in(base, entry);
        break;
    case DT_PLTRELSZ:
        imports->bytes[0] = entry->d_un.d_val;
        break;
    case DT_RELA:
        imports->relocations[1] = pointer_in(base, entry);
        break;
    case DT_RELASZ:
        imports->bytes[1] = entry->d_un.d_val;
        break;
    default:
        break;
    }
}

static struct imports imports_of(const struct dl_phdr_info *info)
{
    struct imports imports = {0};
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            imports.dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (const ElfW(Dyn) *entry = imports.dynamic; entry && entry->d_tag != DT_NULL; entry++)
        take_entry(&imports, info->dlpi_addr, entry);
    return imports;
}

static size_t import_count(const struct imports *imports, int part)
{
    return imports->names && imports->symbols && imports->relocations[part]
               ? imports->bytes[part] / sizeof(ElfW(Rela))
               : 0;
}

static const char *import_name(const struct imports *imports, int part, size_t i)
{
    const ElfW(Sym) *symbol = &imports->symbols[ELF64_R_SYM(imports->relocations[part][i].r_info)];
    return symbol->st_shndx == SHN_UNDEF && symbol->st_name ? imports->names + symbol->st_name
                                                            : NULL;
}

static int take_imports(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(struct imports *)data = imports_of(info);
    return 1; /* the program comes first; the other objects are not needed */
}

void scope_imports(void (*visit)(const char *name, void *data), void *data)
{
    struct imports imports = {0};
    dl_iterate_phdr(take_imports, &imports);
    for (int part = 0; part < 2; part++)
        for (size_t i = 0; i < import_count(&imports, part); i++) {
            const char *name = import_name(&imports, part, i);
            if (name)
                visit(name, data);
        }
}

struct bindings {
    const char *part;
    bool (*visit)(const struct scope_import *import, void *data);
    void *data;
};

static bool is_linked_with(const struct imports *imports, const char *part)
{
    for (const ElfW(Dyn) *entry = imports->dynamic;
         imports->names && entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED && strcasestr(imports->names + entry->d_un.d_val, part))
            return true;
    return false;
}

static int visit_bindings(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    const struct bindings *bindings = data;
    struct imports imports = imports_of(info);
    if (!is_linked_with(&imports, bindings->part))
        return 0;
    for (int part = 0; part < 2; part++)
        for (size_t i = 0; i < import_count(&imports, part); i++) {
            struct scope_import import = {.path = info->dlpi_name,
                                          .name = import_name(&imports, part, i)};
            if (!import.name)
                continue;
            memcpy(&import.bound_to,
                   (const char *)info->dlpi_addr + imports.relocations[part][i].r_offset,
                   sizeof import.bound_to);
            if (bindings->visit(&import, bindings->data))
                return 1;
        }
    return 0;
}

bool scope_bindings(const char *part, bool (*visit)(const struct scope_import *import, void *data),
                    void *data)
{
    return dl_iterate_phdr(visit_bindings, &(struct bindings){part, visit, data});
}
