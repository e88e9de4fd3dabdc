-- Runs that others published beside what was predicted of them: of each the newest prediction under
-- each software. Seconds of a step, or bytes of a device at its peak.
CREATE TABLE published (
  run          TEXT NOT NULL,
  quantity     TEXT NOT NULL CHECK (quantity IN ('time', 'memory')),
  software     TEXT NOT NULL,
  gpu          TEXT NOT NULL,
  source       TEXT NOT NULL,
  link         TEXT NOT NULL,
  measured     REAL NOT NULL,
  predicted    REAL NOT NULL,
  low          REAL NOT NULL,
  high         REAL NOT NULL,
  predicted_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  PRIMARY KEY (run, quantity, software)
) STRICT, WITHOUT ROWID;
