-- Along which axis of the mesh collectives go, and what each stage of a pipeline holds and does.
-- Empty: not known, or stored before there was this column; between the tiers of a rank there is none.
ALTER TABLE collectives ADD COLUMN axis TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;  -- see RunResult
ALTER TABLE runs ADD COLUMN tokens_per_step INTEGER NOT NULL DEFAULT 0;  -- 0: of runs before, all data parallel

CREATE TABLE stages (
  run                      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  stage                    INTEGER NOT NULL,
  rank                     INTEGER NOT NULL,
  ranks                    INTEGER NOT NULL,
  peak_parameter_bytes     INTEGER NOT NULL,
  peak_gradient_bytes      INTEGER NOT NULL,
  peak_optimizer_bytes     INTEGER NOT NULL,
  peak_activation_bytes    INTEGER NOT NULL,
  peak_communication_bytes INTEGER NOT NULL,
  peak_workspace_bytes     INTEGER NOT NULL,
  peak_staging_bytes       INTEGER NOT NULL,
  reserved_device_bytes    INTEGER NOT NULL,
  step_time_ps             INTEGER,
  compute_ps               INTEGER,
  exposed_communication_ps INTEGER,
  exposed_tensor_ps        INTEGER,
  exposed_pipeline_ps      INTEGER,
  offload_stall_ps         INTEGER,
  bubble_ps                INTEGER,
  optimizer_ps             INTEGER,
  PRIMARY KEY (run, stage)
) STRICT, WITHOUT ROWID;
