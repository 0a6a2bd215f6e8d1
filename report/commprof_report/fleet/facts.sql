-- Which facts does one rank say about itself and its job?
SELECT key, value FROM fact ORDER BY key;
