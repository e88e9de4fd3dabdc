-- How well a model tells the labels of held-out texts, beside what takes no model for it.
CREATE TABLE label_scores (
  run               INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  data              TEXT NOT NULL,
  texts             INTEGER NOT NULL,
  loss              REAL,
  accuracy          REAL,
  accuracy_low      REAL,  -- and its interval, 95 %
  accuracy_high     REAL,
  macro_f1          REAL,
  majority_accuracy REAL,  -- of always saying the commonest label
  majority_macro_f1 REAL,
  words_accuracy    REAL,  -- of naive Bayes over counts of words
  words_macro_f1    REAL
) STRICT;
