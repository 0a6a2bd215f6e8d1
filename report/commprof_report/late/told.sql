-- Which collectives of threads that negotiate are control?
SELECT world_rank, thread, call, bytes, signature, is_control FROM told_sample;
