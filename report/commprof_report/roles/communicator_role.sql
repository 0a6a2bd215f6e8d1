-- What each communicator is for (roles.py fills it in).
CREATE TEMP TABLE IF NOT EXISTS communicator_role (identity TEXT PRIMARY KEY, role TEXT NOT NULL);
