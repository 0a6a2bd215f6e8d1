/* The first version of glibc's symbols on this machine: every glibc has them by it, under whatever other version besides. */
#ifndef COMMPROF_OLD_GLIBC_H
#define COMMPROF_OLD_GLIBC_H

#ifdef __x86_64__
#define OLDEST_GLIBC "GLIBC_2.2.5"
#else
#define OLDEST_GLIBC "GLIBC_2.17" /* AArch64 */
#endif

#endif
