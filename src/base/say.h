/* Lines on the job's stderr, "commprof: ...": the only place where the library writes to a descriptor of the job.
 *
 * The job never notices one. It raises no signal, waits for no reader, leaves errno and signal masks as they were, and is left out once
 * descriptor 2 is not what it was at MPI_Init: a program that closes it and opens a data file finds no line of ours in there. */
#ifndef COMMPROF_SAY_H
#define COMMPROF_SAY_H

/* Before the real MPI_Init: remember what descriptor 2 is. Nothing is said before, or by forked children. */
void say_begin(void);

/* Say one line. Control characters are made visible: a newline as \n, others as \x1b. It may be left out: see above. */
void say_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for those who know nothing of formats. */
void say_text(const char *line);

#endif
