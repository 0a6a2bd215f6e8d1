-- What does a timeline look up for each call? How long it waited.
CREATE INDEX temp.late_call_of_rank ON late_call (world_rank, identity, sequence);
