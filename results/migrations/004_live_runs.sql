-- Runs under way, for those who watch: a row lives as long as its run.
CREATE TABLE live_runs (
  id       INTEGER PRIMARY KEY,
  scenario TEXT NOT NULL,
  strategy TEXT NOT NULL,
  backend  TEXT NOT NULL,
  steps    INTEGER NOT NULL,  -- planned
  loss     BLOB NOT NULL,     -- of the steps so far, float64 little-endian
  updated  INTEGER NOT NULL   -- seconds since 1970
) STRICT;
