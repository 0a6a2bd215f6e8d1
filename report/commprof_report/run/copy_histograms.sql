-- Adds the histograms of the attached file `source` to the run.
INSERT INTO main.bucket SELECT cell + :first_cell, bucket, count FROM source.bucket WHERE count > 0 ORDER BY cell, bucket;

INSERT INTO main.gpu_bucket
SELECT activity + :first_activity, bucket, count FROM source.gpu_bucket WHERE count > 0 ORDER BY activity, bucket;
