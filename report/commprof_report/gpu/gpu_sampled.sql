-- In which windows were all activities of each stream of the selected ranks sampled?
SELECT gpu_stream.world_rank AS rank, device, gpu_stream.stream, begin_ns, end_ns
FROM gpu_stream
LEFT JOIN gpu_sample_window ON gpu_sample_window.world_rank = gpu_stream.world_rank AND gpu_sample_window.stream = gpu_stream.stream
WHERE gpu_stream.world_rank IN (SELECT world_rank FROM selected_rank)
ORDER BY gpu_stream.world_rank, device, gpu_stream.stream, begin_ns;
