-- By which names can a user select a communicator?
SELECT identity, label, name FROM run_communicator
UNION
SELECT identity, label, '' FROM communicator_of WHERE identity IN ('none', 'other', 'unknown');
