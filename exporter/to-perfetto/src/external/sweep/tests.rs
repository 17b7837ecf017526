use super::*;

/// Returns the tree and the depth of each span by its id, and the arrows to children.
fn swept(spans: &[(u64, u64, u64, u64)]) -> (Vec<(u64, u64, u32)>, Vec<u64>) {
    let config = PerfettoConfig::default();
    let mut sweep = Sweep::new(1 << 10, &config);
    let mut summary = PerfettoSummary::default();
    let mut records: Vec<Record> = (0..)
        .zip(spans)
        .map(|(number, &(id, parent, start, end))| Record {
            start,
            end,
            id,
            parent,
            number,
            ..Record::default()
        })
        .collect();
    records.sort_by_key(|record| record.start);
    for together in records.chunk_by(|one, other| one.start == other.start) {
        sweep.add(&mut together.to_vec(), &mut |_| 0, &mut summary);
    }
    sweep.end();
    let (mut places, mut arrows) = (Vec::new(), Vec::new());
    for found in sweep.take_found() {
        match found {
            SweepEvent::Span(record) => places.push((record.id, record.tree, record.depth)),
            SweepEvent::Arrow { parent, .. } => arrows.push(parent),
            SweepEvent::LogOnRow(_) => {}
        }
    }
    places.sort_unstable();
    (places, arrows)
}

#[test]
fn log_record_is_nested_in_its_span_and_does_not_displace_children() {
    let config = PerfettoConfig::default();
    let mut sweep = Sweep::new(1 << 10, &config);
    let span = |id, parent, start, end| Record {
        start,
        end,
        id,
        parent,
        ..Record::default()
    };
    let log = |parent, time| Record {
        is_log_record: true,
        ..span(0, parent, time, time)
    };
    // Within its span and a child of its span, at the end, after the end, and of an unknown span.
    let all = [
        vec![span(1, 0, 0, 9)],
        vec![span(2, 1, 2, 5)],
        vec![log(1, 3)],
        vec![span(3, 2, 4, 5)],
        vec![log(1, 9)],
        vec![log(1, 10), log(99, 10)],
    ];
    for mut together in all {
        sweep.add(&mut together, &mut |_| 0, &mut PerfettoSummary::default());
    }
    sweep.end();
    let (mut spans, mut logs, mut on_row) = (Vec::new(), Vec::new(), Vec::new());
    for found in sweep.take_found() {
        match found {
            SweepEvent::Span(record) if record.is_log_record => logs.push((record.start, record.depth)),
            SweepEvent::Span(record) => spans.push((record.id, record.depth)),
            SweepEvent::LogOnRow(record) => on_row.push(record.parent),
            SweepEvent::Arrow { .. } => {}
        }
    }
    spans.sort_unstable();
    on_row.sort_unstable();
    assert_eq!(spans, [(1, 0), (2, 1), (3, 2)]);
    assert_eq!((logs, on_row), (vec![(3, 1), (9, 1)], vec![1, 99]));
}

#[test]
fn children_are_nested_in_their_parents_for_any_input_order() {
    let spans = [
        (3, 2, 0, 4),
        (2, 1, 0, 4),
        (4, 1, 4, 9),
        (1, 0, 0, 9),
        (5, 4, 9, 9),
    ];
    let expected = vec![(1, 1, 0), (2, 1, 1), (3, 1, 2), (4, 1, 1), (5, 1, 2)];
    assert_eq!(swept(&spans), (expected, vec![]));
}

#[test]
fn overlapping_and_late_children_get_their_own_tree_and_an_arrow() {
    // One crosses its sibling, one crosses its parent, one begins after its parent, one has an unknown parent.
    let spans = [
        (1, 0, 0, 9),
        (2, 1, 0, 5),
        (3, 1, 4, 8),
        (4, 1, 8, 12),
        (5, 2, 20, 30),
        (6, 99, 40, 41),
    ];
    let (places, arrows) = swept(&spans);
    assert_eq!(
        places,
        [(1, 1, 0), (2, 1, 1), (3, 2, 0), (4, 3, 0), (5, 4, 0), (6, 5, 0)]
    );
    assert_eq!(arrows, [1, 1, 2, 99]);
}

#[test]
fn spans_that_begin_where_others_end_are_sorted_by_depth() {
    // 4 is at the end of 2 and before 3, which also begins there and ends 2.
    let spans = [
        (1, 0, 0, 9),
        (2, 1, 0, 5),
        (3, 1, 5, 5),
        (4, 2, 5, 5),
        (6, 1, 5, 8),
    ];
    let (places, _) = swept(&spans);
    assert_eq!(places, [(1, 1, 0), (2, 1, 1), (3, 1, 1), (4, 1, 2), (6, 1, 1)]);
}

#[test]
fn span_beyond_the_open_span_limit_is_drawn_without_nested_children() {
    let last = MIN_OPEN_LIMIT as u64;
    let mut spans: Vec<_> = (1..=last).map(|id| (id, 0, id, 9_000)).collect();
    // The first span can have nested children, and the one beyond the limit cannot.
    spans.extend([
        (9_001, 1, 5_000, 5_001),
        (9_002, 0, 6_000, 7_000),
        (9_003, 9_002, 6_500, 6_600),
    ]);
    let (places, arrows) = swept(&spans);
    assert_eq!(places.len(), MIN_OPEN_LIMIT + 3);
    let placed = |id: u64| places.iter().find(|place| place.0 == id).copied();
    assert_eq!(placed(9_001), Some((9_001, 1, 1)));
    assert_eq!(placed(9_002), Some((9_002, last + 1, 0)));
    assert_eq!(placed(9_003), Some((9_003, last + 2, 0)));
    assert_eq!(arrows, [9_002]);
}

#[test]
fn parent_cycle_and_self_parent_are_each_broken_and_counted_once() {
    let mut summary = PerfettoSummary::default();
    let record = |id, parent, number| Record {
        id,
        parent,
        number,
        ..Record::default()
    };
    let cycle = vec![record(1, 2, 1), record(2, 1, 2), record(3, 3, 3)];
    let ordered = depth_first(cycle.clone(), |_| 0, &mut summary);
    let ids: Vec<u64> = ordered.iter().map(|record| record.id).collect();
    assert_eq!((ids, summary.cycles), (vec![1, 2, 3], 2));
    // A log record of a span in the cycle, before it in the input, is not a cycle.
    let log_record = Record {
        is_log_record: true,
        ..record(0, 1, 0)
    };
    let ordered = depth_first([vec![log_record], cycle].concat(), |_| 0, &mut summary);
    assert_eq!((ordered[0].id, ordered.len(), summary.cycles), (1, 4, 4));
}
