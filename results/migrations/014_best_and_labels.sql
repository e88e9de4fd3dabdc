-- Each label of a model that tells them: how many texts have it, are told to have it, and both.
CREATE TABLE label_counts (
  run      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name     TEXT NOT NULL,
  texts    INTEGER NOT NULL,
  told     INTEGER NOT NULL,
  correct  INTEGER NOT NULL,
  PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;
-- The best evaluation of the steps that a resumed run did not take again.
CREATE TABLE best_before (
  run    INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  step   INTEGER NOT NULL,
  loss   REAL,
  tokens INTEGER NOT NULL
) STRICT;
