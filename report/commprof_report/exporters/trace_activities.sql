-- The single GPU activities that a timeline shows, stream by stream.
SELECT gpu_sample.world_rank AS rank,
       stream,
       kind,
       coalesce(gpu_kernel.name, '') AS kernel,
       copy,
       is_graph,
       run_communicator.label AS communicator,
       bytes,
       start_ns,
       end_ns
FROM gpu_sample
LEFT JOIN gpu_kernel USING (world_rank, kernel)
LEFT JOIN communicator ON communicator.world_rank = gpu_sample.world_rank AND communicator.communicator = gpu_sample.communicator
LEFT JOIN run_communicator USING (identity)
ORDER BY gpu_sample.world_rank, stream, start_ns, end_ns DESC;
