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
        void *data = found.st_size > 0 ? mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0) : MAP_FAILED;
        *file = data != MAP_FAILED ? (struct elf_file){data, (size_t)found.st_size} : (struct elf_file){(const void *)"", 0};
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

/* An array of `count` elements of `each` bytes at an offset; NULL if it exceeds the file or is misaligned. */
static const void *lies_in(const struct elf_file *file, uint64_t offset, uint64_t count, uint64_t each)
{
    bool fits = offset <= file->bytes && each > 0 && count <= (file->bytes - offset) / each;
    return fits && offset % 4 == 0 ? file->data + offset : NULL;
}

static const ElfW(Ehdr) * header_of(const struct elf_file *file)
{
    bool is_ours = elf_is_elf(file) && elf_bits(file) == (int)(8 * sizeof(void *)) && file->data[EI_DATA] == ELFDATA2LSB;
    return is_ours ? lies_in(file, 0, 1, sizeof(ElfW(Ehdr))) : NULL;
}

const char *elf_interpreter(const struct elf_file *file)
{
    const ElfW(Ehdr) *header = header_of(file);
    const ElfW(Phdr) *part = header ? lies_in(file, header->e_phoff, header->e_phnum, sizeof *part) : NULL;
    for (int i = 0; part && i < header->e_phnum; i++, part++) {
        bool is_inside = part->p_offset < file->bytes && part->p_filesz <= file->bytes - part->p_offset && part->p_filesz > 0;
        if (part->p_type == PT_INTERP && is_inside && file->data[part->p_offset + part->p_filesz - 1] == '\0')
            return (const char *)file->data + part->p_offset;
    }
    return NULL;
}

static const ElfW(Shdr) * section(const struct elf_file *file, unsigned index)
{
    const ElfW(Ehdr) *header = header_of(file);
    const ElfW(Shdr) *sections = header ? lies_in(file, header->e_shoff, header->e_shnum, sizeof *sections) : NULL;
    return sections && index < header->e_shnum ? sections + index : NULL;
}

/* The text at `offset` of a string table; "" if it is outside of the table. */
static const char *text_in(const struct elf_file *file, const ElfW(Shdr) * table, uint64_t offset)
{
    bool is_sound = table && table->sh_offset < file->bytes && table->sh_size > 0 && table->sh_size <= file->bytes - table->sh_offset &&
                    file->data[table->sh_offset + table->sh_size - 1] == '\0';
    return is_sound && offset < table->sh_size ? (const char *)file->data + table->sh_offset + offset : "";
}

const char *elf_soname(const struct elf_file *file)
{
    const ElfW(Shdr) * table;
    for (unsigned i = 0; (table = section(file, i)); i++) {
        size_t count = table->sh_type == SHT_DYNAMIC ? table->sh_size / sizeof(ElfW(Dyn)) : 0;
        const ElfW(Dyn) *entry = lies_in(file, table->sh_offset, count, sizeof *entry);
        for (size_t k = 0; entry && k < count; k++)
            if (entry[k].d_tag == DT_SONAME)
                return text_in(file, section(file, table->sh_link), entry[k].d_un.d_val);
    }
    return NULL;
}

struct symbols {
    const struct elf_file *file;
    const ElfW(Shdr) * names;
    const ElfW(Sym) * at;
    size_t count;
};

static struct symbols symbols_in(const struct elf_file *file, const ElfW(Shdr) * table)
{
    size_t count = table->sh_size / sizeof(ElfW(Sym));
    const ElfW(Sym) *at = lies_in(file, table->sh_offset, count, sizeof *at);
    return (struct symbols){file, section(file, table->sh_link), at, at ? count : 0};
}

static const char *name_of(const struct symbols *symbols, const ElfW(Sym) * symbol)
{
    return text_in(symbols->file, symbols->names, symbol->st_name);
}

static void visit_tables(const struct elf_file *file, enum elf_tables tables, elf_visitor *visit, void *data)
{
    const ElfW(Shdr) * table;
    for (unsigned i = 0; (table = section(file, i)); i++) {
        if (table->sh_type != SHT_DYNSYM && !(tables == ELF_ALL && table->sh_type == SHT_SYMTAB))
            continue;
        struct symbols symbols = symbols_in(file, table);
        for (size_t k = 0; k < symbols.count; k++)
            visit(name_of(&symbols, &symbols.at[k]), symbols.at[k].st_shndx != SHN_UNDEF, data);
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

static bool has_relocation(const struct elf_file *file, const ElfW(Shdr) * relocations, const char *symbol)
{
    const ElfW(Shdr) *table = section(file, relocations->sh_link);
    size_t count = relocations->sh_size / sizeof(ElfW(Rela));
    const ElfW(Rela) *at = lies_in(file, relocations->sh_offset, count, sizeof *at);
    if (!at || !table || table->sh_type != SHT_DYNSYM)
        return false;
    struct symbols symbols = symbols_in(file, table);
    for (size_t i = 0; i < count; i++) {
        size_t index = ELF64_R_SYM(at[i].r_info);
        if (index < symbols.count && strcmp(name_of(&symbols, &symbols.at[index]), symbol) == 0)
            return true;
    }
    return false;
}

bool elf_binds_by_name(const struct elf_file *file, const char *symbol)
{
    const ElfW(Shdr) * relocations;
    for (unsigned i = 0; (relocations = section(file, i)); i++)
        if (relocations->sh_type == SHT_RELA && has_relocation(file, relocations, symbol))
            return true;
    return false;
}

bool elf_mentions(const struct elf_file *file, const char *text)
{
    return memmem(file->data, file->bytes, text, strlen(text)) != NULL;
}
