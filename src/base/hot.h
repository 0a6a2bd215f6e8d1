/* Functions on the path of every wrapped call are always inlined, whatever their size. */
#ifndef COMMPROF_HOT_H
#define COMMPROF_HOT_H

#define HOT static inline __attribute__((always_inline))

#endif
