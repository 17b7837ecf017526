-- Views and macros for a trace that `pulsetrain convert` wrote, for Perfetto's trace_processor:
--
--   trace_processor_shell --add-sql-package exporter/convert/sql/pulsetrain run.pftrace
--   > INCLUDE PERFETTO MODULE pulsetrain.training;
--   > SELECT * FROM pulsetrain_slowest_rank ORDER BY over_median_ns DESC LIMIT 10;
--
-- In the Perfetto UI, paste the statements into "Query (SQL)". Times are nanoseconds. The critical path is in `critical_path.sql`.

-- The rank and the service of each process, from the attributes of its resource.
CREATE PERFETTO VIEW pulsetrain_process AS
SELECT
  process.upid,
  process.name,
  extract_arg(slice.arg_set_id, 'debug.service_name') AS service,
  extract_arg(slice.arg_set_id, 'debug.train_rank') AS rank,
  extract_arg(slice.arg_set_id, 'debug.train_run_id') AS run_id,
  extract_arg(slice.arg_set_id, 'debug.train_attempt') AS attempt
FROM slice
JOIN process_track ON slice.track_id = process_track.id
JOIN process USING (upid)
WHERE slice.name = 'resource' AND slice.dur = 0;

-- An attribute of a span, or else of the nearest span around it that has it.
CREATE PERFETTO MACRO pulsetrain_nearest(slice_id Expr, arg_set Expr, key Expr) RETURNS Expr AS
coalesce(
  extract_arg($arg_set, $key),
  (
    SELECT extract_arg(above.arg_set_id, $key)
    FROM ancestor_slice($slice_id) AS above
    WHERE extract_arg(above.arg_set_id, $key) IS NOT NULL
    ORDER BY above.depth DESC
    LIMIT 1
  )
);

-- One row for each span that has a duration, with its process and its parent on the same row. A lean trace has the trace id at
-- the first span of each tree on a row. In a trace `--by trace`, the scope is the service.
CREATE PERFETTO VIEW pulsetrain_span AS
SELECT
  slice.id,
  slice.parent_id,
  slice.ts,
  slice.dur,
  slice.name,
  slice.category AS scope,
  slice.depth,
  slice.arg_set_id,
  process.upid,
  process.name AS process,
  pulsetrain_nearest!(slice.id, slice.arg_set_id, 'debug.train_step') AS step,
  pulsetrain_nearest!(slice.id, slice.arg_set_id, 'debug.otel.trace_id') AS trace_id,
  extract_arg(slice.arg_set_id, 'debug.otel.kind') AS kind,
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
  span.name,
  span.step,
  span.upid,
  member.rank,
  member.run_id,
  member.attempt,
  span.process
FROM pulsetrain_span AS span
JOIN pulsetrain_process AS member USING (upid)
WHERE span.name = 'train.step';

-- The rank that took longest for the spans of each name in each step, and how much longer than the median of all ranks:
--
--   SELECT * FROM pulsetrain_slowest_rank_of!((SELECT * FROM pulsetrain_span WHERE name = 'perf.forward'));
--
-- The spans need `id`, `ts`, `dur`, `name`, `step` and `upid`. Several spans of a rank, as of micro-batches, are added up;
-- `id` and `ts` are those of the first.
CREATE PERFETTO MACRO pulsetrain_slowest_rank_of(spans TableOrSubquery) RETURNS TableOrSubquery AS
(
  WITH
  per_rank AS (
    SELECT
      member.run_id,
      member.attempt,
      span.step,
      span.name,
      member.rank,
      member.upid,
      min(span.id) AS id,
      min(span.ts) AS ts,
      sum(span.dur) AS dur
    FROM $spans AS span
    JOIN pulsetrain_process AS member USING (upid)
    WHERE span.step IS NOT NULL
    GROUP BY member.upid, span.step, span.name
  ),
  ordered AS (
    SELECT
      *,
      row_number() OVER (PARTITION BY run_id, attempt, step, name ORDER BY dur) AS place,
      count() OVER (PARTITION BY run_id, attempt, step, name) AS ranks
    FROM per_rank
  )
  SELECT
    slowest.run_id,
    slowest.attempt,
    slowest.step,
    slowest.name,
    slowest.rank,
    slowest.id,
    slowest.ts,
    slowest.dur,
    slowest.ranks,
    slowest.dur - median.dur AS over_median_ns
  FROM ordered AS slowest
  JOIN ordered AS median
    ON median.run_id IS slowest.run_id
    AND median.attempt IS slowest.attempt
    AND median.step = slowest.step
    AND median.name = slowest.name
    AND median.place = (slowest.ranks + 1) / 2
  WHERE slowest.place = slowest.ranks
);

-- The rank that took longest in each step.
CREATE PERFETTO VIEW pulsetrain_slowest_rank AS
SELECT * FROM pulsetrain_slowest_rank_of!(pulsetrain_step);

-- Spans, and all spans within them on the same row, each with the `root_id` of the span that was given:
--
--   SELECT name, sum(dur) FROM pulsetrain_within!((SELECT id FROM pulsetrain_step WHERE step = 5)) GROUP BY name;
CREATE PERFETTO MACRO pulsetrain_within(spans TableOrSubquery) RETURNS TableOrSubquery AS
(
  WITH member AS (
    SELECT id AS root_id, id FROM $spans
    UNION ALL
    SELECT root.id AS root_id, below.id FROM $spans AS root JOIN descendant_slice(root.id) AS below
  )
  SELECT member.root_id, span.* FROM member JOIN pulsetrain_span AS span USING (id)
);

-- Number and durations of spans for each value of a column, here of an attribute:
--
--   SELECT * FROM pulsetrain_durations!((
--     SELECT dur, extract_arg(arg_set_id, 'debug.http_route') AS route FROM pulsetrain_span WHERE kind = 'server'
--   ), route) ORDER BY p99_ns DESC;
CREATE PERFETTO MACRO pulsetrain_durations(spans TableOrSubquery, key ColumnName) RETURNS TableOrSubquery AS
(
  SELECT
    $key,
    count() AS spans,
    sum(dur) AS total_ns,
    percentile(dur, 50) AS p50_ns,
    percentile(dur, 90) AS p90_ns,
    percentile(dur, 99) AS p99_ns,
    max(dur) AS max_ns
  FROM $spans
  GROUP BY $key
);

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

-- The spans that failed among the given ones and those within them on the same row:
--
--   SELECT * FROM pulsetrain_errors_within!((SELECT id FROM pulsetrain_step WHERE step = 5));
CREATE PERFETTO MACRO pulsetrain_errors_within(spans TableOrSubquery) RETURNS TableOrSubquery AS
(
  SELECT
    root_id,
    id,
    ts,
    dur,
    name,
    process,
    extract_arg(arg_set_id, 'debug.otel.status_message') AS message
  FROM pulsetrain_within!($spans)
  WHERE status = 'error'
);

-- The spans of one trace, in the order of time.
CREATE PERFETTO FUNCTION pulsetrain_trace(trace_id STRING)
RETURNS TABLE(id LONG, ts LONG, dur LONG, name STRING, process STRING)
AS
SELECT span.id, span.ts, span.dur, span.name, span.process
FROM pulsetrain_span AS span
WHERE span.trace_id = $trace_id
ORDER BY span.ts;
