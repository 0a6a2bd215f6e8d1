-- The role of each communicator (filled by roles.py).
CREATE TEMP TABLE IF NOT EXISTS communicator_role (identity TEXT PRIMARY KEY, role TEXT NOT NULL);
