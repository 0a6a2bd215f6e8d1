/* The functions of libsqlite3 that the store uses, found at run time. If the job has already loaded
 * a copy (Python has its own), that one is used: two versions in one process might disturb each
 * other. */
#ifndef COMMPROF_SQLITE_H
#define COMMPROF_SQLITE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

enum { SQLITE_OK = 0, SQLITE_DONE = 101, SQLITE_OPEN_READWRITE = 2, SQLITE_OPEN_NOMUTEX = 0x8000 };

struct sqlite {
    int (*open_v2)(const char *, sqlite3 **, int, const char *);
    int (*close)(sqlite3 *);
    int (*exec)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
    int (*prepare_v2)(sqlite3 *, const char *, int, sqlite3_stmt **, const char **);
    int (*bind_int64)(sqlite3_stmt *, int, int64_t);
    int (*bind_text)(sqlite3_stmt *, int, const char *, int, void (*)(void *));
    int (*bind_null)(sqlite3_stmt *, int);
    int (*step)(sqlite3_stmt *);
    int (*reset)(sqlite3_stmt *);
    int (*finalize)(sqlite3_stmt *);
    const char *(*errmsg)(sqlite3 *);
    int (*system_errno)(sqlite3 *); /* NULL before SQLite 3.12 */
};
extern struct sqlite sqlite;

/* Finds the library. False if there is none. */
bool sqlite_load(void);

#endif
