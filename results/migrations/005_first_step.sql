-- The steps that a resumed run did not take again; 0: a fresh run. Steps count from there.
ALTER TABLE runs ADD COLUMN first_step INTEGER NOT NULL DEFAULT 0;
ALTER TABLE live_runs ADD COLUMN first_step INTEGER NOT NULL DEFAULT 0;

-- What simulated runs were stored with was no loss, norm or scale of any training.
DELETE FROM step_metrics
WHERE name <> 'step_seconds' AND run IN (SELECT id FROM runs WHERE backend = 'sim');

-- As before, with first_step, and NULL for what a run without steps did not measure.
DROP VIEW run_table;
CREATE VIEW run_table AS
SELECT
  r.id AS run,
  r.saved_at,
  r.scenario AS scenario_hash,
  s.name AS scenario,
  r.strategy,
  r.backend,
  r.outcome,
  r.ranks,
  r.steps,
  r.first_step,
  (SELECT m.value FROM step_metrics m WHERE m.run = r.id AND m.name = 'loss'
   ORDER BY m.step DESC LIMIT 1) AS final_loss,
  CASE WHEN measured THEN r.tokens_per_second END AS tokens_per_second,
  CASE WHEN measured THEN r.step_time_median_ps END AS step_time_median_ps,
  CASE WHEN measured THEN r.mfu END AS mfu,
  CASE WHEN measured THEN (SELECT coalesce(sum(p.bytes), 0) FROM memory_peaks p
   WHERE p.run = r.id AND p.space = 'device') END AS peak_device_bytes,
  CASE WHEN measured THEN (SELECT coalesce(sum(p.bytes), 0) FROM memory_peaks p
   WHERE p.run = r.id AND p.space = 'host') END AS peak_host_bytes,
  CASE WHEN measured THEN r.reserved_device_bytes END AS reserved_device_bytes,
  CASE WHEN measured THEN r.wire_bytes_per_step END AS wire_bytes_per_step
FROM (SELECT *, outcome = 'ok' OR steps > 0 AS measured FROM runs) r
JOIN scenarios s ON s.hash = r.scenario;
