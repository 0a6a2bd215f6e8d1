-- The streams of GPUs in a timeline.
SELECT gpu_stream.world_rank AS rank, stream, gpu_stream.number, gpu_device.number AS device
FROM gpu_stream
LEFT JOIN gpu_device USING (world_rank, device)
ORDER BY gpu_stream.world_rank, stream;
