-- Of a published run: what the fit without its group predicts (0: not known), whether its time was put
-- together from operators, and all measurements, of which `measured` is the median, as a JSON list.
ALTER TABLE published ADD COLUMN left_out REAL NOT NULL DEFAULT 0;
ALTER TABLE published ADD COLUMN is_composed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE published ADD COLUMN measurements TEXT NOT NULL DEFAULT '[]';
