/* Copies the names of kernels. CUPTI's records point to names in its own memory, which it may have
 * freed when a module was unloaded: so they are read soon, and by process_vm_readv of ourselves,
 * which cannot fault. */
#ifndef COMMPROF_CUPTI_NAMES_H
#define COMMPROF_CUPTI_NAMES_H

/* A copy, valid until names_forget; NULL if the name cannot be read. A name longer than a page is
 * cut. */
const char *names_read(const char *theirs);

/* A new buffer begins: the same address may hold another name. */
void names_forget(void);

#endif
