-- Runs may be interrupted, carry the name of the scenario that they are of (two of one content share
-- a row of scenarios), and never get the id of one that was deleted. Foreign keys are off here: the
-- rows that refer to runs stay. What the views say of the scenario is read from its JSON.
DROP VIEW pareto;
DROP VIEW sim_vs_measured;
DROP VIEW strategy_table;
DROP VIEW run_table;

CREATE TABLE runs_of_version_7 (
  id                    INTEGER PRIMARY KEY AUTOINCREMENT,
  scenario              TEXT NOT NULL REFERENCES scenarios (hash),
  scenario_name         TEXT NOT NULL,
  environment           INTEGER NOT NULL REFERENCES environments (id),
  saved_at              TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  strategy              TEXT NOT NULL,
  backend               TEXT NOT NULL CHECK (backend IN ('cpu', 'cuda', 'sim')),
  precision             TEXT NOT NULL,  -- fp32 | bf16 | fp16; '': stored before version 6
  outcome               TEXT NOT NULL CHECK (outcome IN ('ok', 'out_of_memory', 'infeasible',
                                                         'failed', 'interrupted')),
  message               TEXT NOT NULL,
  ranks                 INTEGER NOT NULL,
  steps                 INTEGER NOT NULL,
  first_step            INTEGER NOT NULL,
  skipped_steps         INTEGER NOT NULL,
  tokens_per_second     REAL,
  step_time_median_ps   INTEGER,
  step_time_min_ps      INTEGER,
  step_time_max_ps      INTEGER,
  step_time_low_ps      INTEGER,
  step_time_high_ps     INTEGER,
  model_flops_per_step  REAL,
  mfu                   REAL,
  mfu_convention        TEXT NOT NULL,
  reserved_device_bytes INTEGER NOT NULL,
  reserved_host_bytes   INTEGER NOT NULL,
  wire_bytes_per_step   INTEGER NOT NULL,
  op_count              INTEGER NOT NULL,
  op_sequence_hash      INTEGER NOT NULL  -- the 64 bits of an unsigned hash
) STRICT;
INSERT INTO runs_of_version_7
SELECT id, scenario, coalesce((SELECT name FROM scenarios WHERE hash = scenario), ''), environment,
  saved_at, strategy, backend, precision, outcome, message, ranks, steps, first_step, skipped_steps,
  tokens_per_second, step_time_median_ps, step_time_min_ps, step_time_max_ps, step_time_low_ps,
  step_time_high_ps, model_flops_per_step, mfu, mfu_convention, reserved_device_bytes,
  reserved_host_bytes, wire_bytes_per_step, op_count, op_sequence_hash
FROM runs;
DROP TABLE runs;
ALTER TABLE runs_of_version_7 RENAME TO runs;
CREATE INDEX runs_by_key ON runs (scenario, strategy, backend, id);

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
  CAST(coalesce(json ->> '$.run.stack', '') AS TEXT) AS stack,
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

-- The latest run of each strategy of each scenario on each backend. One that crashed or was
-- interrupted is neither a measurement nor a prediction, so it does not hide an earlier result.
CREATE VIEW strategy_table AS
SELECT * FROM run_table
WHERE run IN (SELECT max(id) FROM runs WHERE outcome NOT IN ('failed', 'interrupted')
              GROUP BY scenario, scenario_name, strategy, backend);

-- Prediction beside measurement; error: 100 * (simulated - measured) / measured, where both ran.
-- Under whichever names: what has the same content has the same prediction.
CREATE VIEW sim_vs_measured AS
WITH newest AS (
  SELECT * FROM run_table
  WHERE run IN (SELECT max(id) FROM runs WHERE outcome NOT IN ('failed', 'interrupted')
                GROUP BY scenario, strategy, backend))
SELECT
  m.scenario_hash,
  m.scenario,
  m.strategy,
  m.backend AS measured_backend,
  m.run AS measured_run,
  s.run AS simulated_run,
  m.outcome AS measured_outcome,
  s.outcome AS simulated_outcome,
  m.step_time_median_ps AS measured_step_time_ps,
  s.step_time_median_ps AS simulated_step_time_ps,
  CASE WHEN m.outcome = 'ok' AND s.outcome = 'ok' THEN
    100.0 * (s.step_time_median_ps - m.step_time_median_ps) / m.step_time_median_ps
  END AS step_time_error_percent,
  m.peak_device_bytes AS measured_peak_device_bytes,
  s.peak_device_bytes AS simulated_peak_device_bytes,
  CASE WHEN m.outcome = 'ok' AND s.outcome = 'ok' THEN
    100.0 * (s.peak_device_bytes - m.peak_device_bytes) / m.peak_device_bytes
  END AS peak_device_error_percent,
  m.wire_bytes_per_step AS measured_wire_bytes_per_step,
  s.wire_bytes_per_step AS simulated_wire_bytes_per_step,
  CASE WHEN m.outcome = 'ok' AND s.outcome = 'ok' THEN
    100.0 * (s.wire_bytes_per_step - m.wire_bytes_per_step) / m.wire_bytes_per_step
  END AS wire_bytes_error_percent
FROM newest m
JOIN newest s
  ON s.scenario_hash = m.scenario_hash AND s.strategy = m.strategy AND s.backend = 'sim'
WHERE m.backend <> 'sim';

-- The strategies that no other one of the same scenario and backend beats in both step time and
-- peak device memory.
CREATE VIEW pareto AS
SELECT * FROM strategy_table a
WHERE a.outcome = 'ok'
  AND NOT EXISTS (
    SELECT 1 FROM strategy_table b
    WHERE b.outcome = 'ok' AND b.scenario_hash = a.scenario_hash AND b.scenario = a.scenario
      AND b.backend = a.backend
      AND b.step_time_median_ps <= a.step_time_median_ps
      AND b.peak_device_bytes <= a.peak_device_bytes
      AND (b.step_time_median_ps < a.step_time_median_ps
           OR b.peak_device_bytes < a.peak_device_bytes));
