/* Symbols are found through the section headers, which stripped programs still have. */
#include "elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool elf_open(struct elf_file *file, const char *path)
{
    struct stat found;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    *file = (struct elf_file){NULL, 0};
    if (descriptor < 0)
        return false;
    if (fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode)) {
        void *data = found.st_size > 0
                         ? mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0)
                         : MAP_FAILED;
        *file = data != MAP_FAILED ? (struct elf_file){data, (size_t)found.st_size}
                                   : (struct elf_file){(const void *)"", 0};
    }
    int error = file->data ? 0 : EISDIR;
    close(descriptor);
    errno = error;
    return file->data;
}

void elf_close(struct elf_file *file)
{
    if (file->bytes > 0)
        munmap((void *)file->data, file->bytes);
    *file = (struct elf_file){NULL, 0};
}

bool elf_is_elf(const struct elf_file *file)
{
    return file->bytes >= EI_NIDENT + 4 && memcmp(file->data, ELFMAG, SELFMAG) == 0;
}

int elf_bits(const struct elf_file *file)
{
    return file->data[EI_CLASS] == ELFCLASS64 ? 64 : 32;
}

int elf_machine(const struct elf_file *file)
{
    enum { MACHINE_AT = 18 }; /* in 32-bit and 64-bit files */
    const unsigned char *at = file->data + MACHINE_AT;
    return file->data[EI_DATA] == ELFDATA2MSB ? at[0] << 8 | at[1] : at[1] << 8 | at[0];
}

const char *elf_machine_name(int machine)
{
    static const struct {
        int machine;
        const char *name;
    } NAMES[] = {
        {EM_386, "x86"},     {EM_X86_64, "x86-64"}, {EM_ARM, "Arm"},    {EM_AARCH64, "AArch64"},
        {EM_PPC64, "ppc64"}, {EM_RISCV, "RISC-V"},  {EM_S390, "s390x"}, {EM_PPC, "ppc"},
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (NAMES[i].machine == machine)
            return NAMES[i].name;
    return "machine";
}

/* Copies an entry of a table; false if it exceeds the file. Nothing in a file need be aligned. */
static bool entry_read(const struct elf_file *file, uint64_t table, uint64_t index, void *entry,
                       size_t bytes)
{
    if (table > file->bytes || index >= (file->bytes - table) / bytes)
        return false;
    memcpy(entry, file->data + table + index * bytes, bytes);
    return true;
}

static bool header_read(const struct elf_file *file, ElfW(Ehdr) * header)
{
    bool is_our_size = elf_is_elf(file) && elf_bits(file) == (int)(8 * sizeof(void *));
    return is_our_size && file->data[EI_DATA] == ELFDATA2LSB &&
           entry_read(file, 0, 0, header, sizeof *header);
}

/* A text that ends with the stretch of the file that it is in; NULL if there is none. */
static const char *text_at(const struct elf_file *file, uint64_t stretch, uint64_t bytes,
                           uint64_t offset)
{
    bool is_inside = stretch < file->bytes && bytes > 0 && bytes <= file->bytes - stretch;
    bool is_sound = is_inside && file->data[stretch + bytes - 1] == '\0';
    return is_sound && offset < bytes ? (const char *)file->data + stretch + offset : NULL;
}

const char *elf_interpreter(const struct elf_file *file)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) part;
    if (!header_read(file, &header))
        return NULL;
    unsigned count = header.e_phnum;
    for (unsigned i = 0; i < count && entry_read(file, header.e_phoff, i, &part, sizeof part);
         i++) {
        const char *path =
            part.p_type == PT_INTERP ? text_at(file, part.p_offset, part.p_filesz, 0) : NULL;
        if (path)
            return path;
    }
    return NULL;
}

static bool section_read(const struct elf_file *file, unsigned index, ElfW(Shdr) * section)
{
    ElfW(Ehdr) header;
    return header_read(file, &header) && index < header.e_shnum &&
           entry_read(file, header.e_shoff, index, section, sizeof *section);
}

/* A text of the string table that is this section; "" if it is outside of the table. */
static const char *text_of(const struct elf_file *file, unsigned index, uint64_t offset)
{
    ElfW(Shdr) table;
    const char *text = section_read(file, index, &table)
                           ? text_at(file, table.sh_offset, table.sh_size, offset)
                           : NULL;
    return text ? text : "";
}

const char *elf_soname(const struct elf_file *file)
{
    ElfW(Shdr) table;
    ElfW(Dyn) entry;
    for (unsigned i = 0; section_read(file, i, &table); i++) {
        size_t count = table.sh_type == SHT_DYNAMIC ? table.sh_size / sizeof entry : 0;
        const uint64_t at = table.sh_offset;
        for (size_t k = 0; k < count && entry_read(file, at, k, &entry, sizeof entry); k++)
            if (entry.d_tag == DT_SONAME)
                return text_of(file, table.sh_link, entry.d_un.d_val);
    }
    return NULL;
}

/* The name of a symbol; NULL behind the last one. */
static const char *symbol_read(const struct elf_file *file, const ElfW(Shdr) * table, size_t index,
                               ElfW(Sym) * symbol)
{
    bool is_in_table = index < table->sh_size / sizeof *symbol;
    bool is_there =
        is_in_table && entry_read(file, table->sh_offset, index, symbol, sizeof *symbol);
    return is_there ? text_of(file, table->sh_link, symbol->st_name) : NULL;
}

static void visit_tables(const struct elf_file *file, enum elf_tables tables, elf_visitor *visit,
                         void *data)
{
    ElfW(Shdr) table;
    ElfW(Sym) symbol;
    const char *name;
    for (unsigned i = 0; section_read(file, i, &table); i++) {
        if (table.sh_type != SHT_DYNSYM && !(tables == ELF_ALL && table.sh_type == SHT_SYMTAB))
            continue;
        for (size_t k = 0; (name = symbol_read(file, &table, k, &symbol)); k++)
            visit(name, symbol.st_shndx != SHN_UNDEF, data);
    }
}

void elf_visit(const struct elf_file *file, elf_visitor *visit, void *data)
{
    visit_tables(file, ELF_DYNAMIC, visit, data);
}

struct search {
    const char *symbol;
    bool is_defined, is_asked_for;
};

static void search_symbol(const char *symbol, bool is_defined, void *data)
{
    struct search *search = data;
    if (strcmp(symbol, search->symbol) != 0)
        return;
    search->is_defined |= is_defined;
    search->is_asked_for |= !is_defined;
}

bool elf_defines(const struct elf_file *file, const char *symbol, enum elf_tables tables)
{
    struct search search = {symbol, false, false};
    visit_tables(file, tables, search_symbol, &search);
    return search.is_defined;
}

bool elf_asks_for(const struct elf_file *file, const char *symbol)
{
    struct search search = {symbol, false, false};
    visit_tables(file, ELF_DYNAMIC, search_symbol, &search);
    return search.is_asked_for;
}

static bool has_relocation(const struct elf_file *file, const ElfW(Shdr) * relocations,
                           const char *symbol)
{
    ElfW(Shdr) table;
    ElfW(Rela) relocation;
    ElfW(Sym) found;
    size_t count = relocations->sh_size / sizeof relocation;
    if (!section_read(file, relocations->sh_link, &table) || table.sh_type != SHT_DYNSYM)
        return false;
    const uint64_t at = relocations->sh_offset;
    for (size_t i = 0; i < count && entry_read(file, at, i, &relocation, sizeof relocation); i++) {
        const char *name = symbol_read(file, &table, ELF64_R_SYM(relocation.r_info), &found);
        if (name && strcmp(name, symbol) == 0)
            return true;
    }
    return false;
}

bool elf_binds_by_name(const struct elf_file *file, const char *symbol)
{
    ElfW(Shdr) relocations;
    for (unsigned i = 0; section_read(file, i, &relocations); i++)
        if (relocations.sh_type == SHT_RELA && has_relocation(file, &relocations, symbol))
            return true;
    return false;
}

bool elf_mentions(const struct elf_file *file, const char *text)
{
    return memmem(file->data, file->bytes, text, strlen(text)) != NULL;
}
