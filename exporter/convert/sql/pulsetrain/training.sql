-- Views of a trace that `pulsetrain convert` wrote, for Perfetto's trace_processor:
--
--   trace_processor_shell --add-sql-package exporter/convert/sql/pulsetrain run.pftrace
--   > INCLUDE PERFETTO MODULE pulsetrain.training;
--   > SELECT * FROM pulsetrain_slowest_rank ORDER BY behind_median_ns DESC LIMIT 10;
--
-- In the Perfetto UI, paste the statements into "Query (SQL)". Times are nanoseconds.

-- The rank of each process, from the attributes of its resource.
CREATE PERFETTO VIEW pulsetrain_process AS
SELECT
  process.upid,
  process.name,
  extract_arg(slice.arg_set_id, 'debug.train_rank') AS rank,
  extract_arg(slice.arg_set_id, 'debug.train_run_id') AS run_id,
  extract_arg(slice.arg_set_id, 'debug.train_attempt') AS attempt
FROM slice
JOIN process_track ON slice.track_id = process_track.id
JOIN process USING (upid)
WHERE slice.name = 'resource' AND slice.dur = 0;

-- One row for each span, with its process and its parent on the same row. `step` and `trace_id` are those of the span itself.
CREATE PERFETTO VIEW pulsetrain_span AS
SELECT
  slice.id,
  slice.parent_id,
  slice.ts,
  slice.dur,
  slice.name,
  slice.category AS scope,
  slice.depth,
  process.upid,
  process.name AS process,
  extract_arg(slice.arg_set_id, 'debug.train_step') AS step,
  extract_arg(slice.arg_set_id, 'debug.otel.trace_id') AS trace_id,
  extract_arg(slice.arg_set_id, 'debug.otel.status') AS status
FROM slice
JOIN process_track ON slice.track_id = process_track.id
JOIN process USING (upid)
-- Rows of states are before those of spans.
WHERE slice.dur > 0 AND extract_arg(process_track.source_arg_set_id, 'sibling_order_rank') >= 0;

-- One row for each step of a rank.
CREATE PERFETTO VIEW pulsetrain_step AS
SELECT
  span.id,
  span.ts,
  span.dur,
  span.step,
  member.rank,
  member.run_id,
  member.attempt,
  span.process
FROM pulsetrain_span AS span
JOIN pulsetrain_process AS member USING (upid)
WHERE span.name = 'train.step';

-- The rank that took longest in each step, and how much longer than the median of all ranks.
CREATE PERFETTO VIEW pulsetrain_slowest_rank AS
WITH ordered AS (
  SELECT
    *,
    row_number() OVER same_step AS place,
    count() OVER (PARTITION BY run_id, attempt, step) AS ranks
  FROM pulsetrain_step
  WINDOW same_step AS (PARTITION BY run_id, attempt, step ORDER BY dur)
)
SELECT
  slowest.run_id,
  slowest.attempt,
  slowest.step,
  slowest.rank,
  slowest.id,
  slowest.ts,
  slowest.dur,
  slowest.ranks,
  slowest.dur - median.dur AS behind_median_ns
FROM ordered AS slowest
JOIN ordered AS median
  ON median.run_id IS slowest.run_id
  AND median.attempt IS slowest.attempt
  AND median.step = slowest.step
  AND median.place = (slowest.ranks + 1) / 2
WHERE slowest.place = slowest.ranks;

-- What the slowest rank of each step did: the step waits for it, so these spans are its critical path.
CREATE PERFETTO VIEW pulsetrain_critical_path AS
SELECT
  slowest.run_id,
  slowest.attempt,
  slowest.step,
  slowest.rank,
  child.id,
  child.ts,
  child.dur,
  child.name,
  1.0 * child.dur / slowest.dur AS share
FROM pulsetrain_slowest_rank AS slowest
JOIN slice AS child ON child.parent_id = slowest.id AND child.dur > 0;

-- Spans that failed, with the message of their status.
CREATE PERFETTO VIEW pulsetrain_error AS
SELECT
  slice.ts,
  process.name AS process,
  slice.name,
  extract_arg(slice.arg_set_id, 'debug.otel.status_message') AS message
FROM slice
JOIN process_track ON slice.track_id = process_track.id
JOIN process USING (upid)
WHERE process_track.name = 'errors' AND slice.dur = 0;

-- The spans of one trace, in the order of time. A lean trace has the id at the first span of each tree on a row.
CREATE PERFETTO FUNCTION pulsetrain_trace(trace_id STRING)
RETURNS TABLE(id LONG, ts LONG, dur LONG, name STRING, process STRING)
AS
SELECT span.id, span.ts, span.dur, span.name, span.process
FROM pulsetrain_span AS span
WHERE span.trace_id = $trace_id
  OR EXISTS (
    SELECT 1
    FROM ancestor_slice(span.id) AS above
    WHERE extract_arg(above.arg_set_id, 'debug.otel.trace_id') = $trace_id
  )
ORDER BY span.ts;
