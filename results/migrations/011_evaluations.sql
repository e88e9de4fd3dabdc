-- How good the model of a training was on data that it does not train on.
CREATE TABLE evaluations (
  run    INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  step   INTEGER NOT NULL,  -- 0: before the first
  loss   REAL,              -- mean over the tokens; NULL: not a number
  tokens INTEGER NOT NULL,  -- that count
  PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;
