-- What does each rank run?
SELECT world_rank, value FROM fact WHERE key = 'command_line';
