-- The tables that the questions ask: each job once, and only the rows of its file. A file without
-- its job's own row was not finished.
CREATE TEMP VIEW kept AS
SELECT run, min(part) AS part FROM job_files GROUP BY run;

CREATE TEMP VIEW jobs AS
SELECT job_files.*
FROM job_files
JOIN kept ON kept.run = job_files.run AND kept.part = job_files.part;

CREATE TEMP VIEW size_rows AS
SELECT row_files.*
FROM row_files
JOIN kept ON kept.run = row_files.run AND kept.part = row_files.part;

CREATE TEMP VIEW buckets AS
SELECT bucket_files.*
FROM bucket_files
JOIN kept ON kept.run = bucket_files.run AND kept.part = bucket_files.part;

CREATE TEMP VIEW job_hosts AS
SELECT host_files.*
FROM host_files
JOIN kept ON kept.run = host_files.run AND kept.part = host_files.part;

CREATE TEMP VIEW settings AS
SELECT setting_files.*
FROM setting_files
JOIN kept ON kept.run = setting_files.run AND kept.part = setting_files.part;
