/* What a program or library file says about itself: machine, interpreter, symbols. Every offset in it is checked against the file's
 * size; a table that does not lie in the file is taken for empty. */
#ifndef COMMPROF_ELF_FILE_H
#define COMMPROF_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct elf_file {
    const unsigned char *data; /* NULL: not open */
    size_t bytes;
};

/* Map a file for reading. False, with errno, where that cannot be done. */
bool elf_open(struct elf_file *file, const char *path);
void elf_close(struct elf_file *file);

bool elf_is_elf(const struct elf_file *file);
int elf_bits(const struct elf_file *file); /* 32 or 64 */
int elf_machine(const struct elf_file *file);
const char *elf_machine_name(int machine); /* "x86-64"; "machine" where the table has none */

/* The functions below understand files of our own word size and byte order; of others they find nothing. */

/* The loader that a program asks for; NULL: none, it is statically linked. */
const char *elf_interpreter(const struct elf_file *file);

/* The name that a library is asked for by; NULL: none. */
const char *elf_soname(const struct elf_file *file);

enum elf_tables { ELF_DYNAMIC, ELF_ALL }; /* what the loader sees; with what a debugger sees */

bool elf_defines(const struct elf_file *file, const char *symbol, enum elf_tables tables);
bool elf_asks_for(const struct elf_file *file, const char *symbol);

/* Call `visit` with each symbol that the file defines for others, or asks of others. */
typedef void elf_visitor(const char *symbol, bool is_defined, void *data);
void elf_visit(const struct elf_file *file, elf_visitor *visit, void *data);

/* Whether the file reaches a function by its name, so that a preloaded one of that name comes in between. */
bool elf_binds_by_name(const struct elf_file *file, const char *symbol);

/* Whether these bytes are in the file. */
bool elf_mentions(const struct elf_file *file, const char *text);

#endif
