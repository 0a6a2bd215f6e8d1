-- Adds the samples of the attached file `source` to the run: those that the run retains (thinning.py), if it does not retain all.
INSERT INTO main.sample SELECT sample.* FROM source.sample WHERE 1;

INSERT INTO main.signature SELECT * FROM source.signature WHERE 1;

INSERT INTO main.sample_message SELECT sample_message.* FROM source.sample_message WHERE 1;

INSERT INTO main.sample_start SELECT sample_start.* FROM source.sample_start WHERE 1;

INSERT INTO main.sample_window SELECT * FROM source.sample_window WHERE 1;

INSERT INTO main.step SELECT * FROM source.step WHERE 1;

INSERT INTO main.region_span SELECT region_span.* FROM source.region_span WHERE 1;

INSERT INTO main.gpu_sample SELECT gpu_sample.* FROM source.gpu_sample WHERE 1;

INSERT INTO main.gpu_sample_window SELECT * FROM source.gpu_sample_window WHERE 1;
