/* The subject belongs to commprof-run, not to the library. */
/* NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "tools/doctor/elf_file.c"

#include "unit.h"

enum { SLACK = 64, DAMAGED_FILES = UNIT_SANITIZED ? 400 : 4000, MOST_BYTES = 16 << 10 };

static struct elf_file self_read(void)
{
    struct elf_file file;
    CHECK(elf_open(&file, "/proc/self/exe"));
    return file;
}

/* A copy whose first byte is at an address that no type but char may have. */
static struct elf_file shifted(const struct elf_file *file, size_t bytes)
{
    unsigned char *data = aligned_alloc(SLACK, (file->bytes + 2 * SLACK) / SLACK * SLACK);
    memcpy(data + bytes, file->data, file->bytes);
    return (struct elf_file){data + bytes, file->bytes};
}

static void answers_check(const struct elf_file *file)
{
    CHECK(elf_is_elf(file));
    CHECK(strstr(elf_interpreter(file), "ld"));
    CHECK(elf_asks_for(file, "fork"));
    CHECK(elf_defines(file, "main", ELF_ALL));
    CHECK(!elf_defines(file, "nobody has this name", ELF_ALL));
    CHECK(elf_binds_by_name(file, "fork"));
    CHECK(!elf_soname(file));
}

TEST(a_program_says_what_it_needs)
{
    struct elf_file file = self_read();
    answers_check(&file);
    elf_close(&file);
}

TEST(a_file_is_read_at_any_address)
{
    struct elf_file file = self_read();
    for (size_t bytes = 0; bytes < 8; bytes++) {
        struct elf_file copy = shifted(&file, bytes);
        answers_check(&copy);
    }
}

static void ask_everything(const struct elf_file *file)
{
    if (!elf_is_elf(file))
        return;
    elf_bits(file), elf_machine(file), elf_interpreter(file), elf_soname(file);
    elf_defines(file, "main", ELF_ALL), elf_asks_for(file, "fork"), elf_binds_by_name(file, "fork"),
        elf_mentions(file, "fork");
}

/* The headers and tables of a small file, close to each other, so that most of the damage is to
 * them. */
static struct elf_file small_file(void)
{
    static unsigned char data[MOST_BYTES];
    static const char TEXTS[] = "\0ld.so\0libx.so\0fork\0main";
    const ElfW(Off) at = sizeof(ElfW(Ehdr));
    ElfW(Ehdr) header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
                         .e_phoff = at,
                         .e_phnum = 1,
                         .e_shoff = at + 56,
                         .e_shnum = 4};
    ElfW(Off) text_at = header.e_shoff + 4 * sizeof(ElfW(Shdr)),
              symbols_at = text_at + sizeof TEXTS;
    ElfW(Off) dynamic_at = symbols_at + 2 * sizeof(ElfW(Sym)),
              calls_at = dynamic_at + sizeof(ElfW(Dyn));
    ElfW(Phdr) part = {.p_type = PT_INTERP, .p_offset = text_at + 1, .p_filesz = 6};
    ElfW(Shdr) sections[] = {
        {.sh_type = SHT_STRTAB, .sh_offset = text_at, .sh_size = sizeof TEXTS},
        {.sh_type = SHT_DYNSYM,
         .sh_offset = symbols_at,
         .sh_size = 2 * sizeof(ElfW(Sym)),
         .sh_link = 0},
        {.sh_type = SHT_DYNAMIC,
         .sh_offset = dynamic_at,
         .sh_size = sizeof(ElfW(Dyn)),
         .sh_link = 0},
        {.sh_type = SHT_RELA, .sh_offset = calls_at, .sh_size = sizeof(ElfW(Rela)), .sh_link = 1},
    };
    ElfW(Sym) symbols[] = {{.st_name = 15, .st_shndx = SHN_UNDEF}, {.st_name = 20, .st_shndx = 1}};
    ElfW(Dyn) soname = {.d_tag = DT_SONAME, .d_un.d_val = 7};
    ElfW(Rela) call = {.r_info = 0};
    memcpy(data, &header, sizeof header);
    memcpy(data + header.e_phoff, &part, sizeof part);
    memcpy(data + header.e_shoff, sections, sizeof sections);
    memcpy(data + text_at, TEXTS, sizeof TEXTS);
    memcpy(data + symbols_at, symbols, sizeof symbols);
    memcpy(data + dynamic_at, &soname, sizeof soname);
    memcpy(data + calls_at, &call, sizeof call);
    return (struct elf_file){data, calls_at + sizeof call};
}

TEST(a_file_that_ends_anywhere_is_read_no_further)
{
    struct elf_file file = small_file();
    for (size_t bytes = 0; bytes < file.bytes; bytes++) {
        unsigned char *data =
            malloc(bytes + 1); /* the address sanitizer sees what is behind its end */
        memcpy(data, file.data, bytes);
        ask_everything(&(struct elf_file){data, bytes});
        free(data);
    }
}

TEST(a_damaged_file_is_read_no_further)
{
    static const unsigned char BYTES[] = {0, 1, 4, 0x7f, 0x80, 0xfe, 0xff};
    struct elf_file file = small_file();
    unsigned char *data = malloc(file.bytes);
    srand(1);
    for (int i = 0; i < DAMAGED_FILES; i++) {
        memcpy(data, file.data, file.bytes);
        for (int k = 0; k <= i % 8; k++)
            data[EI_NIDENT + (size_t)rand() % (file.bytes - EI_NIDENT)] =
                BYTES[(size_t)rand() % sizeof BYTES];
        ask_everything(&(struct elf_file){data, file.bytes});
    }
    free(data);
}

TEST(a_small_file_says_what_it_needs)
{
    struct elf_file file = small_file();
    CHECK_TEXT(elf_interpreter(&file), "ld.so");
    CHECK_TEXT(elf_soname(&file), "libx.so");
    CHECK(elf_asks_for(&file, "fork") && elf_defines(&file, "main", ELF_DYNAMIC) &&
          elf_binds_by_name(&file, "fork"));
}
