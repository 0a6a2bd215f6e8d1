/* How long each thread that calls MPI was on a core, and how long it was ready but had none: struct
 * ledger_cpu_time. A service thread takes some 10 readings a second, of one thread after another,
 * into a log of bounded size. */
#ifndef COMMPROF_CPU_TIME_H
#define COMMPROF_CPU_TIME_H

enum {
    CPU_TIME_PERIOD_MS = 100, /* between two readings, on average */
    CPU_TIME_MOST = 2046,     /* two chunks: a thread for 204 s, before the log is thinned */
    CPU_TIME_THREADS = 1024,  /* that are followed */
};

/* Start the thread, unless the settings say otherwise. Without it nothing is read. */
void cpu_time_begin(void);

/* Take each thread's last reading, and stop. Returns within a second, whatever happens. */
void cpu_time_end(void);

#endif
