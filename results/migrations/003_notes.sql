-- What people write about runs: free text and words to filter by, separated by spaces.
CREATE TABLE notes (
  run  INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  note TEXT NOT NULL,
  tags TEXT NOT NULL
) STRICT;
