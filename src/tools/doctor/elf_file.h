/* Reads a program's or library's ELF file: machine, interpreter, symbols. Every offset is checked
 * against the file's size; a table that exceeds the file counts as empty. */
#ifndef COMMPROF_ELF_FILE_H
#define COMMPROF_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct elf_file {
    const unsigned char *data; /* NULL: not open */
    size_t bytes;
};

/* Map a file for reading. False, with errno, if that fails. */
bool elf_open(struct elf_file *file, const char *path);
void elf_close(struct elf_file *file);

bool elf_is_elf(const struct elf_file *file);
int elf_bits(const struct elf_file *file); /* 32 or 64 */
int elf_machine(const struct elf_file *file);
const char *elf_machine_name(int machine); /* "x86-64"; "machine" if it is not in the table */

/* The functions below find nothing in files of another word size or byte order than ours. */

/* The loader that a program requests; NULL: none, it is statically linked. */
const char *elf_interpreter(const struct elf_file *file);

/* The name by which programs request a library; NULL: none. */
const char *elf_soname(const struct elf_file *file);

enum elf_tables { ELF_DYNAMIC, ELF_ALL }; /* symbols for the loader; also those for a debugger */

bool elf_defines(const struct elf_file *file, const char *symbol, enum elf_tables tables);
bool elf_asks_for(const struct elf_file *file, const char *symbol);

/* Call `visit` with each symbol that the file exports or imports. */
typedef void elf_visitor(const char *symbol, bool is_defined, void *data);
void elf_visit(const struct elf_file *file, elf_visitor *visit, void *data);

/* Whether the file calls a function by its name, so that a preloaded function of that name
 * intercepts the calls. */
bool elf_binds_by_name(const struct elf_file *file, const char *symbol);

/* Whether these bytes are in the file. */
bool elf_mentions(const struct elf_file *file, const char *text);

#endif
