-- The causes of a wait, for the queries that join them with the waits: each would build such an index for itself.
CREATE INDEX late_cause_of_wait ON late_cause (wait, cause_rank, caused_ns);
