-- What predictions rest on, and what did not fit would have needed. Empty and 0: not known, or stored
-- before there were these columns.
ALTER TABLE runs ADD COLUMN priced_from TEXT NOT NULL DEFAULT '';  -- see RunResult
ALTER TABLE runs ADD COLUMN own_step_error REAL NOT NULL DEFAULT 0;  -- see RunResult
ALTER TABLE runs ADD COLUMN device_capacity_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN needed_in_use_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN needed_reserved_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN needed_host_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN needed_nvme_bytes INTEGER NOT NULL DEFAULT 0;
