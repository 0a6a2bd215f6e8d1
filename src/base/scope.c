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
    void *handle = dlopen(caller->dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return false; /* dlopen does not find the main program by the name in dli_fname */
    bool is_there = scope_definer(handle, symbol, found);
    dlclose(handle);
    return is_there;
}

struct scan {
    const char *part, *symbol;
    char path[900]; /* is on the stack of one of the job's threads: see docs/OVERHEAD.md */
};

static int scan_object(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    struct scan *scan = data;
    const char *slash = object->dlpi_name ? strrchr(object->dlpi_name, '/') : NULL;
    if (!slash || !strcasestr(slash, scan->part))
        return 0;
    void *handle = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return 0;
    Dl_info info;
    bool defines = scope_definer(handle, scan->symbol, &info) && (ElfW(Addr))info.dli_fbase == object->dlpi_addr;
    dlclose(handle);
    if (defines)
        snprintf(scan->path, sizeof scan->path, "%s", object->dlpi_name);
    return defines;
}

bool scope_anywhere(const char *part, const char *symbol, Dl_info *found)
{
    struct scan scan = {part, symbol, ""};
    if (!dl_iterate_phdr(scan_object, &scan))
        return false;
    void *handle = dlopen(scan.path, RTLD_LAZY | RTLD_NOLOAD);
    bool is_there = handle && scope_definer(handle, symbol, found);
    if (handle)
        dlclose(handle);
    return is_there;
}

static void take_segment(struct scope_object *object, ElfW(Addr) base, const ElfW(Phdr) * segment)
{
    uintptr_t begin = base + segment->p_vaddr, end = begin + segment->p_memsz;
    object->begin = object->end == 0 || begin < object->begin ? begin : object->begin;
    object->end = end > object->end ? end : object->end;
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
    struct scope_object object = {.is_program = !search->is_later};
    search->is_later = true;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            take_segment(&object, info->dlpi_addr, &info->dlpi_phdr[i]);
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

static int take_imports(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            for (const ElfW(Dyn) *entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); entry->d_tag != DT_NULL; entry++)
                take_entry(data, info->dlpi_addr, entry);
    return 1; /* the program comes first; the other objects are not needed */
}

void scope_imports(void (*visit)(const char *name, void *data), void *data)
{
    struct imports imports = {0};
    dl_iterate_phdr(take_imports, &imports);
    if (!imports.names || !imports.symbols)
        return;
    for (int part = 0; part < 2; part++)
        for (size_t i = 0; imports.relocations[part] && i < imports.bytes[part] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Sym) *symbol = &imports.symbols[ELF64_R_SYM(imports.relocations[part][i].r_info)];
            if (symbol->st_shndx == SHN_UNDEF && symbol->st_name)
                visit(imports.names + symbol->st_name, data);
        }
}
