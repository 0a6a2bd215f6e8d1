/* The oldest symbol version of glibc on this architecture. Every glibc has these symbols under it,
 * perhaps under newer ones as well. */
#ifndef COMMPROF_OLD_GLIBC_H
#define COMMPROF_OLD_GLIBC_H

#ifdef __x86_64__
#define OLDEST_GLIBC "GLIBC_2.2.5"
#else
#define OLDEST_GLIBC "GLIBC_2.17" /* AArch64 */
#endif

#endif
