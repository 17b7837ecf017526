-- The critical path of spans: where their time went, so that the parts add up to their durations.
--
--   > INCLUDE PERFETTO MODULE pulsetrain.critical_path;
--   > SELECT name, sum(self_ns) / 1e6 AS ms FROM pulsetrain_critical_path GROUP BY name ORDER BY ms DESC;
--
-- In the Perfetto UI, paste `training.sql` first, and this file without its first statement.
INCLUDE PERFETTO MODULE pulsetrain.training;

-- Spans with the spans in which they run: on the same row, or with an arrow from it and within its time, in any process. A child
-- has a larger id than its parent, so there is no circle.
CREATE PERFETTO TABLE pulsetrain_child AS
SELECT parent_id, id, ts, ts + dur AS end_ts
FROM slice
WHERE dur > 0 AND parent_id IS NOT NULL
UNION
SELECT caller.id AS parent_id, called.id, called.ts, called.ts + called.dur AS end_ts
FROM flow
JOIN slice AS caller ON caller.id = flow.slice_out
JOIN slice AS called ON called.id = flow.slice_in
WHERE called.dur > 0 AND called.ts >= caller.ts AND called.ts + called.dur <= caller.ts + caller.dur
ORDER BY parent_id;

-- The critical path of spans with an `id`, each with the `root_id` of the span that was given:
--
--   SELECT * FROM pulsetrain_critical_path_of!((SELECT id FROM pulsetrain_span WHERE name = 'POST /checkout'));
--
-- From the end of a span backwards: the child that ends last is on the path, then the child that ends last before that one
-- begins, and so on, and the same within each. `self_ns` is the time of a span in which no child of it is on the path.
CREATE PERFETTO MACRO pulsetrain_critical_path_of(spans TableOrSubquery) RETURNS TableOrSubquery AS
(
  WITH RECURSIVE
  path(root_id, parent_id, id, ts, end_ts, level) AS (
    SELECT root.id, NULL, root.id, root.ts, root.ts + root.dur, 0
    FROM $spans AS given
    JOIN slice AS root ON root.id = given.id
    WHERE root.dur > 0
    UNION ALL
    SELECT path.root_id, next.parent_id, next.id, next.ts, next.end_ts, path.level + step.down
    FROM path
    -- Down to a child, or to what was before in the same parent.
    JOIN (SELECT 1 AS down UNION ALL SELECT 0) AS step
    JOIN pulsetrain_child AS next
      ON next.parent_id = iif(step.down, path.id, path.parent_id)
      AND next.id = (
        SELECT last.id
        FROM pulsetrain_child AS last
        WHERE last.parent_id = iif(step.down, path.id, path.parent_id)
          AND last.end_ts <= iif(step.down, path.end_ts, path.ts)
        ORDER BY last.end_ts DESC, last.id DESC
        LIMIT 1
      )
  ),
  inside AS (
    SELECT root_id, parent_id, sum(end_ts - ts) AS dur
    FROM path
    WHERE parent_id IS NOT NULL
    GROUP BY root_id, parent_id
  )
  SELECT
    path.root_id,
    path.id,
    path.ts,
    path.end_ts - path.ts AS dur,
    slice.name,
    process.name AS process,
    path.level,
    path.end_ts - path.ts - coalesce(inside.dur, 0) AS self_ns
  FROM path
  JOIN slice USING (id)
  LEFT JOIN process_track ON process_track.id = slice.track_id
  LEFT JOIN process USING (upid)
  LEFT JOIN inside ON inside.root_id = path.root_id AND inside.parent_id = path.id
);

-- The critical path of each step: of its slowest rank, as the others wait for it.
CREATE PERFETTO VIEW pulsetrain_critical_path AS
SELECT
  slowest.run_id,
  slowest.attempt,
  slowest.step,
  slowest.rank,
  path.id,
  path.ts,
  path.dur,
  path.name,
  path.level,
  path.self_ns,
  1.0 * path.self_ns / slowest.dur AS share
FROM pulsetrain_critical_path_of!(pulsetrain_slowest_rank) AS path
JOIN pulsetrain_slowest_rank AS slowest ON slowest.id = path.root_id;
