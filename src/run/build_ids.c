#include "build_ids.h"

#include "ledger/ledger.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

static const char *const LIBRARIES[] = {
    "libmpi",    "libpmpi",  "libopen-", "libprrte", "libpmix",     "libhwloc",
    "libuc",     "libhcoll", "libnccl",  "librccl",  "libmscc",     "libpsm",
    "libfabric", "libib",    "libmlx5",  "libefa",   "libcommprof", NULL};

static bool is_listed(const char *file)
{
    for (const char *const *library = LIBRARIES; *library; library++)
        if (strncmp(file, *library, strlen(*library)) == 0)
            return true;
    return false;
}

static size_t padded(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

/* A note is a header, a name and a description, each padded to four bytes. NULL: there is no build
 * id among them. */
static const unsigned char *find_build_id(const char *notes, size_t notes_bytes, size_t *bytes)
{
    const ElfW(Nhdr) * note;
    for (size_t at = 0; at + sizeof *note <= notes_bytes;
         at += sizeof *note + padded(note->n_namesz) + padded(note->n_descsz)) {
        note = (const void *)(notes + at);
        const char *name = (const char *)(note + 1);
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
            *bytes = note->n_descsz;
            return (const unsigned char *)name + padded(note->n_namesz);
        }
    }
    return NULL;
}

static void record(const char *file, const unsigned char *id, size_t bytes)
{
    char key[256], text[2 * 64 + 1] = "";
    snprintf(key, sizeof key, "build_id.%.200s", file);
    for (size_t i = 0; i < bytes && i < 64; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    ledger_fact(key, text);
}

static int take_object(struct dl_phdr_info *object, size_t size, void *changes)
{
    (void)size;
    *(unsigned long long *)changes = object->dlpi_adds + object->dlpi_subs;
    const char *slash = object->dlpi_name ? strrchr(object->dlpi_name, '/') : NULL;
    if (!slash || !is_listed(slash + 1))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        size_t bytes;
        const unsigned char *id =
            segment->p_type == PT_NOTE
                ? find_build_id((const char *)object->dlpi_addr + segment->p_vaddr,
                                segment->p_memsz, &bytes)
                : NULL;
        if (id)
            record(slash + 1, id, bytes);
    }
    return 0;
}

static int count_changes(struct dl_phdr_info *object, size_t size, void *changes)
{
    (void)size;
    *(unsigned long long *)changes = object->dlpi_adds + object->dlpi_subs;
    return 1;
}

void build_ids_record(void)
{
    static unsigned long long recorded;
    unsigned long long changes = 0;
    dl_iterate_phdr(count_changes, &changes);
    if (changes != recorded)
        dl_iterate_phdr(take_object, &recorded);
}
