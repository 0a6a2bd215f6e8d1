-- Which steps has the program marked?
SELECT step, world_rank, begin_ns, end_ns, thread FROM step WHERE end_ns > begin_ns ORDER BY world_rank, begin_ns;
