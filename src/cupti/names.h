/* Names of kernels. CUPTI's records have them as pointers into memory of its own, which it may have given back when a module was unloaded: so
 * they are copied without being touched (process_vm_readv of ourselves), and soon. */
#ifndef COMMPROF_CUPTI_NAMES_H
#define COMMPROF_CUPTI_NAMES_H

/* A copy, good until names_forget; NULL where the name cannot be read. Longer ones than a page are cut. */
const char *names_read(const char *theirs);

/* A new buffer begins: the same address may be another name. */
void names_forget(void);

#endif
