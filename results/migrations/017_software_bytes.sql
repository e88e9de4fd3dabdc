-- What the software of a prediction would hold itself of the fullest device, with the error bar of
-- what it takes of the device; 0 and '': not known, or it is this core.
ALTER TABLE runs ADD COLUMN software_in_use_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN software_device_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN software_low_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN software_high_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN software_peak_at TEXT NOT NULL DEFAULT '';
