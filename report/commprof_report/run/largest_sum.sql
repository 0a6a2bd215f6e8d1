-- What is the largest sum that a query can compute, as a float?
SELECT max(
    (SELECT max(total(count), total(1.0 * count * bytes), total(volume_bytes), total(total_ns), total(blocked_ns)) FROM cell),
    (SELECT total(count) FROM bucket),
    (SELECT max(total(count), total(bytes), total(time_ns)) FROM peer),
    (SELECT total(counted_ns) FROM rank),
    (SELECT max(total(count), total(volume_bytes), total(total_ns)) FROM gpu_activity),
    (SELECT total(count) FROM gpu_bucket),
    (SELECT total(ns) FROM gpu_busy),
    (SELECT max(total(kernels), total(copies), total(sets), total(communication_sm_ns)) FROM gpu_device),
    (SELECT max(total(end_ns - begin_ns), total(records)) FROM gpu_tracing),
    (SELECT total(count) FROM nccl_algorithm),
    (SELECT max(total(abs(end_ns - start_ns)), total(abs(device_end_ns - device_start_ns)), total(abs(completed_ns - start_ns))) FROM sample)
);
