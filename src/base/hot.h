/* Functions on the way of every wrapped call are inlined, whatever the compiler thinks of their size. */
#ifndef COMMPROF_HOT_H
#define COMMPROF_HOT_H

#define HOT static inline __attribute__((always_inline))

#endif
