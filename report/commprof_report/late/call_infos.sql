-- Each call: whether ranks wait for each other in it, and the rule of its bandwidth.
SELECT name AS call, library, family, form, waits_for, kind,
       coalesce(synchronizing.is_blocking, 0) AS is_blocking, bandwidth
FROM call LEFT JOIN synchronizing ON synchronizing.call = call.name;
