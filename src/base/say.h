/* Prints lines on the job's stderr, "commprof: ...". Nothing else in the library writes to a
 * descriptor of the job.
 *
 * A line never disturbs the job: it raises no signal, waits for no reader, and preserves errno and
 * signal masks. Nothing is printed once descriptor 2 refers to something else than at MPI_Init, so
 * no line gets into a data file that the job opened under that number. */
#ifndef COMMPROF_SAY_H
#define COMMPROF_SAY_H

/* Before the real MPI_Init: remember what descriptor 2 refers to. Nothing is printed before this
 * call, or by forked children. */
void say_begin(void);

/* Print one line. Control characters are made visible: a newline as \n, others as \x1b. The line
 * may be dropped: see above. */
void say_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a complete line: % has no special meaning. */
void say_text(const char *line);

#endif
