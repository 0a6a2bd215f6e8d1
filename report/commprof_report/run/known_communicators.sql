-- Under which names can a user ask for a communicator?
SELECT identity, label, name FROM run_communicator
UNION
SELECT identity, label, '' FROM communicator_of WHERE identity IN ('none', 'other', 'unknown');
