-- The root causes of each wait: which ranks caused how much of it. cause_rank: null, the cause is not known.
DROP TABLE IF EXISTS temp.late_cause;
CREATE TEMP TABLE late_cause (wait INTEGER NOT NULL, cause_rank INTEGER, caused_ns REAL NOT NULL);
