-- One readable row per run.
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
  (SELECT m.value FROM step_metrics m WHERE m.run = r.id AND m.name = 'loss'
   ORDER BY m.step DESC LIMIT 1) AS final_loss,
  r.tokens_per_second,
  r.step_time_median_ps,
  r.mfu,
  (SELECT coalesce(sum(p.bytes), 0) FROM memory_peaks p
   WHERE p.run = r.id AND p.space = 'device') AS peak_device_bytes,
  (SELECT coalesce(sum(p.bytes), 0) FROM memory_peaks p
   WHERE p.run = r.id AND p.space = 'host') AS peak_host_bytes,
  r.reserved_device_bytes,
  r.wire_bytes_per_step
FROM runs r JOIN scenarios s ON s.hash = r.scenario;

-- The latest run of each strategy of each scenario on each backend. A crash ('failed') is neither
-- a measurement nor a prediction, so it does not hide an earlier result.
CREATE VIEW strategy_table AS
SELECT * FROM run_table
WHERE run IN (SELECT max(id) FROM runs WHERE outcome <> 'failed'
              GROUP BY scenario, strategy, backend);

-- Prediction beside measurement; error: 100 * (simulated - measured) / measured, where both ran.
CREATE VIEW sim_vs_measured AS
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
FROM strategy_table m
JOIN strategy_table s
  ON s.scenario_hash = m.scenario_hash AND s.strategy = m.strategy AND s.backend = 'sim'
WHERE m.backend <> 'sim';

-- The strategies that no other one of the same scenario and backend beats in both step time and
-- peak device memory.
CREATE VIEW pareto AS
SELECT * FROM strategy_table a
WHERE a.outcome = 'ok'
  AND NOT EXISTS (
    SELECT 1 FROM strategy_table b
    WHERE b.outcome = 'ok' AND b.scenario_hash = a.scenario_hash AND b.backend = a.backend
      AND b.step_time_median_ps <= a.step_time_median_ps
      AND b.peak_device_bytes <= a.peak_device_bytes
      AND (b.step_time_median_ps < a.step_time_median_ps
           OR b.peak_device_bytes < a.peak_device_bytes));
