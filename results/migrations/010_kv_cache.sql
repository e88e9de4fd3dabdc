-- Keys and values of generated text have a tag of their own.
ALTER TABLE stages ADD COLUMN peak_kv_cache_bytes INTEGER NOT NULL DEFAULT 0;
