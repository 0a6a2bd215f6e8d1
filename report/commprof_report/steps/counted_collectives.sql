-- How many collectives between ranks were counted, and sampled on some rank? And how many starts of
-- persistent ones were sampled?
SELECT (
           SELECT CAST(total(count) AS INTEGER)
           FROM cell
           JOIN call ON call.name = cell.call
           JOIN communicator USING (world_rank, communicator)
           WHERE family IN ('collective', 'neighborhood') AND form <> 'persistent'
             AND measure IN ('call', 'captured') AND size + remote_size > 1
       ),
       (
           SELECT count(*)
           FROM sample
           JOIN communicator USING (world_rank, communicator)
           WHERE sequence IS NOT NULL AND communicator > 1 AND size + remote_size > 1
       ),
       (SELECT count(*) FROM sample_start);
