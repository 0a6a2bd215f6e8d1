-- The single calls that a timeline shows, in order for each rank and thread, with the operation
-- that a call waited for.
SELECT sample.world_rank AS rank,
       sample.thread,
       sample.call,
       nullif(label, '-') AS communicator,
       sample.sequence,
       sample.start_ns,
       sample.end_ns,
       sample.completed_ns,
       sample.bytes,
       sample.peer,
       root,
       nullif(request_call, '') AS request_call,
       region.name AS region,
       communicator_of.identity,
       coalesce(library, 'mpi') AS library,
       nullif(datatype, '') AS datatype,
       nullif(op, '') AS op
FROM sample
LEFT JOIN signature ON signature.world_rank = sample.world_rank AND signature.signature = sample.signature
LEFT JOIN call ON call.name = sample.call
LEFT JOIN communicator_of ON communicator_of.world_rank = sample.world_rank AND communicator_of.communicator = sample.communicator
LEFT JOIN region ON region.world_rank = sample.world_rank AND region.region = sample.region
ORDER BY sample.world_rank, sample.thread, sample.start_ns, sample.end_ns DESC;
