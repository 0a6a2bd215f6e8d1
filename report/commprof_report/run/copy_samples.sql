-- Adds the samples of the attached file `source` to the run: those that the run retains (thinning.py).
INSERT INTO main.sample SELECT * FROM temp.retained_sample WHERE 1;

INSERT INTO main.signature SELECT * FROM source.signature WHERE 1;

INSERT INTO main.sample_message SELECT * FROM temp.retained_sample_message WHERE 1;

INSERT INTO main.sample_start SELECT * FROM temp.retained_sample_start WHERE 1;

INSERT INTO main.sample_window SELECT * FROM source.sample_window WHERE 1;

INSERT INTO main.step SELECT * FROM source.step WHERE 1;

INSERT INTO main.region_span SELECT * FROM temp.retained_region_span WHERE 1;

INSERT INTO main.gpu_sample SELECT * FROM temp.retained_gpu_sample WHERE 1;

INSERT INTO main.gpu_sample_window SELECT * FROM source.gpu_sample_window WHERE 1;
