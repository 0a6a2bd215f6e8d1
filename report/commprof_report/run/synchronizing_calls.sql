-- The calls in which ranks wait for each other. is_full: ranks wait in it although it moves no bytes, a Barrier.
SELECT call, kind, wait_state, is_sure, is_blocking, form = 'persistent' AS is_persistent, bandwidth = 'unrated' AS is_full,
       bandwidth = 'own-size' AS is_own_size
FROM synchronizing
JOIN call ON call.name = synchronizing.call;
