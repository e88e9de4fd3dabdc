-- One row per distinct machine and build.
CREATE TABLE environments (
  id           INTEGER PRIMARY KEY,
  host         TEXT NOT NULL,
  os           TEXT NOT NULL,
  kernel       TEXT NOT NULL,
  cpu          TEXT NOT NULL,
  cores        INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  gpu          TEXT NOT NULL,
  driver       TEXT NOT NULL,
  compiler     TEXT NOT NULL,
  build        TEXT NOT NULL,
  git_commit   TEXT NOT NULL,
  UNIQUE (host, os, kernel, cpu, cores, memory_bytes, gpu, driver, compiler, build, git_commit)
) STRICT;

-- Content-addressed: the same scenario is the same row.
CREATE TABLE scenarios (
  hash TEXT PRIMARY KEY CHECK (hash <> ''),
  name TEXT NOT NULL,
  json TEXT NOT NULL CHECK (json_valid(json))
) STRICT, WITHOUT ROWID;

-- One strategy of one scenario on one backend. NULL: not a number, or not measured.
CREATE TABLE runs (
  id                    INTEGER PRIMARY KEY,
  scenario              TEXT NOT NULL REFERENCES scenarios (hash),
  environment           INTEGER NOT NULL REFERENCES environments (id),
  saved_at              TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  strategy              TEXT NOT NULL,
  backend               TEXT NOT NULL CHECK (backend IN ('cpu', 'cuda', 'sim')),
  outcome               TEXT NOT NULL
                        CHECK (outcome IN ('ok', 'out_of_memory', 'infeasible', 'failed')),
  message               TEXT NOT NULL,
  ranks                 INTEGER NOT NULL,
  steps                 INTEGER NOT NULL,
  skipped_steps         INTEGER NOT NULL,
  tokens_per_second     REAL,
  step_time_median_ps   INTEGER,
  step_time_min_ps      INTEGER,
  step_time_max_ps      INTEGER,
  step_time_low_ps      INTEGER,
  step_time_high_ps     INTEGER,
  model_flops_per_step  REAL,
  mfu                   REAL,
  mfu_convention        TEXT NOT NULL,
  reserved_device_bytes INTEGER NOT NULL,
  wire_bytes_per_step   INTEGER NOT NULL,
  op_count              INTEGER NOT NULL,
  op_sequence_hash      INTEGER NOT NULL  -- the 64 bits of an unsigned hash
) STRICT;
CREATE INDEX runs_by_key ON runs (scenario, strategy, backend, id);

-- name: loss, grad_norm, learning_rate, step_seconds, loss_scale. NULL: not a number.
CREATE TABLE step_metrics (
  run   INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  name  TEXT NOT NULL,
  step  INTEGER NOT NULL,
  value REAL,
  PRIMARY KEY (run, name, step)
) STRICT, WITHOUT ROWID;

-- The breakdown at the peak of each space's total, on rank 0.
CREATE TABLE memory_peaks (
  run   INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  space TEXT NOT NULL CHECK (space IN ('device', 'host', 'nvme')),
  tag   TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (run, space, tag)
) STRICT, WITHOUT ROWID;

-- Calls and wire bytes of one rank over the whole run.
CREATE TABLE collectives (
  run        INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position   INTEGER NOT NULL,
  collective TEXT NOT NULL,
  group_name TEXT NOT NULL,
  link       TEXT NOT NULL,
  count      INTEGER NOT NULL,
  bytes      INTEGER NOT NULL,
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

-- Where the time of one step goes.
CREATE TABLE phases (
  run     INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  name    TEXT NOT NULL,
  time_ps INTEGER,
  PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE warnings (
  run      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  message  TEXT NOT NULL,
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

-- A full trace is a file beside the database, not rows.
CREATE TABLE traces (
  run    INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  path   TEXT NOT NULL,
  sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
  bytes  INTEGER NOT NULL,
  PRIMARY KEY (run, path)
) STRICT, WITHOUT ROWID;
