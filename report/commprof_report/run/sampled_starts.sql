-- The starts of persistent operations that sampled calls complete.
SELECT rowid AS place, * FROM sample_start;
