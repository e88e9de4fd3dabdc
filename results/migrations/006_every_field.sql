-- What a run had in memory and its row had not. Empty and 0: stored before there were these columns.
ALTER TABLE runs ADD COLUMN precision TEXT NOT NULL DEFAULT '';  -- fp32 | bf16 | fp16
ALTER TABLE runs ADD COLUMN reserved_host_bytes INTEGER NOT NULL DEFAULT 0;
