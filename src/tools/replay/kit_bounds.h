/* A kit has at most these, so that a file of anybody costs little memory; the reporter reads this
 * file, too. */
#ifndef COMMPROF_KIT_BOUNDS_H
#define COMMPROF_KIT_BOUNDS_H

enum {
    TEXT_MOST = 1 << 28,        /* bytes when decompressed, some 20 million calls */
    LINE_MOST = 1 << 24,        /* bytes, without its end */
    TABLE_LINES_MOST = 1 << 22, /* lines that are no calls of programs */
    RANKS_MOST = 1 << 20,       /* all have room in a line */
    REQUESTS_MOST = 1 << 20,    /* the highest number of one */
};

#endif
