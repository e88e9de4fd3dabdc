-- The software that a prediction is of, said or the default of its cluster. '': this core; of runs
-- stored before, what their scenario says.
ALTER TABLE runs ADD COLUMN software TEXT NOT NULL DEFAULT '';
UPDATE runs SET software = coalesce(
  (SELECT CAST(coalesce(json ->> '$.run.software', json ->> '$.run.stack') AS TEXT)
   FROM (SELECT hash, CASE WHEN json_valid(json) THEN json ELSE '{}' END AS json FROM scenarios) s
   WHERE s.hash = runs.scenario), '')
WHERE backend = 'sim';
DROP VIEW run_table;
CREATE VIEW run_table AS
SELECT
  r.id AS run,
  r.saved_at,
  r.scenario AS scenario_hash,
  r.scenario_name AS scenario,
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
  CASE WHEN measured THEN r.wire_bytes_per_step END AS wire_bytes_per_step,
  r.message,
  r.precision,
  CAST(coalesce(json ->> '$.model.name', '') AS TEXT) AS model,
  CAST(coalesce(CASE json_type(json, '$.cluster') WHEN 'text' THEN json ->> '$.cluster'
                ELSE json ->> '$.cluster.name' END, '') AS TEXT) AS cluster,
  r.software,
  CAST(coalesce(json ->> '$.run.data', '') AS TEXT) AS data,
  CAST(json ->> '$.run.seed' AS INTEGER) AS seed,
  CAST(json ->> '$.run.steps' AS INTEGER) AS planned_steps,
  CAST(json ->> '$.run.sequence_length' AS INTEGER) AS sequence_length,
  CAST(json ->> '$.strategies[0].train_micro_batch_size_per_gpu' AS INTEGER) AS micro_batch,
  CAST(json ->> '$.strategies[0].gradient_accumulation_steps' AS INTEGER) AS gradient_accumulation,
  coalesce(n.note, '') AS note,
  coalesce(n.tags, '') AS tags
FROM (SELECT *, outcome = 'ok' OR steps > 0 AS measured FROM runs) r
JOIN (SELECT hash, CASE WHEN json_valid(json) THEN json ELSE '{}' END AS json FROM scenarios) s
  ON s.hash = r.scenario
LEFT JOIN notes n ON n.run = r.id;
