-- An index for looking up how long each call waited.
CREATE INDEX temp.late_call_of_rank ON late_call (world_rank, identity, sequence);
