//! Builds trees from spans with ids: finds parents, cuts cycles, repairs times and assigns groups.

use super::{
    PerfettoSummary, identities::Identities, optional_index::OptionalIndex, scopes::Scopes, spans::Spans,
};

/// The label of spans without a group.
const NO_GROUP: &str = "spans";

/// Links the spans to each other and repairs invalid data.
pub(super) fn build_trees(spans: &mut Spans, scopes: &Scopes, summary: &mut PerfettoSummary) -> Identities {
    let identities = spans.identify(summary);
    if spans.needs_repair {
        repair_times(spans, summary);
    }
    if !link(spans, &identities, summary) {
        cut_cycles(spans, summary);
    }
    give_groups(spans, scopes);
    identities
}

/// Sets a valid start and end for every span.
fn repair_times(spans: &mut Spans, summary: &mut PerfettoSummary) {
    let times = spans.times.unwrap_or_default();
    for span in spans.records.iter_mut().filter(|span| !span.is_log_record()) {
        repair(&mut span.start, &mut span.end, times, summary);
    }
}

/// The latest time that viewers show: they keep times as signed numbers of 64 bits.
pub(super) const LATEST: u64 = i64::MAX as u64;

/// Sets a valid start and end for a span; all spans are between the first and the last time.
pub(super) fn repair(
    start: &mut u64,
    end: &mut u64,
    (first, last): (u64, u64),
    summary: &mut PerfettoSummary,
) {
    if (*start).max(*end) > LATEST {
        summary.beyond_range += 1;
        *start = if *start > LATEST { last } else { *start };
        *end = if *end > LATEST { last.max(*start) } else { *end };
    }
    if *start == 0 {
        summary.without_time += 1;
        // At most the end is known: a start in 1970 would compress everything else.
        *start = if *end == 0 { first } else { *end };
    }
    if *end == 0 {
        summary.unfinished += 1;
        *end = last.max(*start);
    } else if *end < *start {
        summary.end_before_start += 1;
        *end = *start;
    }
}

/// Finds the parent of each span that names one. Returns whether every parent comes after its children, as it does in input
/// that is ordered by the end of spans.
fn link(spans: &mut Spans, identities: &Identities, summary: &mut PerfettoSummary) -> bool {
    let mut in_order = true;
    // Siblings are usually adjacent.
    let mut latest = (0, None);
    for (place, (span, ids)) in (0..).zip(spans.records.iter_mut().zip(&spans.ids)) {
        if ids.parent == 0 {
            continue;
        }
        if latest.0 != ids.parent {
            latest = (ids.parent, identities.get(ids.parent, &spans.ids));
        }
        span.parent = latest.1.into();
        match latest.1 {
            // Log records have no children.
            _ if span.is_log_record() => {}
            Some(parent) => in_order &= parent > place,
            None => summary.missing_parents += 1,
        }
    }
    in_order
}

/// Makes the earliest span of each cycle of parents a root.
fn cut_cycles(spans: &mut Spans, summary: &mut PerfettoSummary) {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        OnThisPath,
        Before,
    }
    let mut seen = vec![Seen::No; spans.records.len()];
    let mut path = Vec::new();
    for span in 0..spans.records.len() as u32 {
        let mut next = Some(span);
        while let Some(here) = next.filter(|here| seen[*here as usize] == Seen::No) {
            seen[here as usize] = Seen::OnThisPath;
            path.push(here);
            next = spans.records[here as usize].parent.get();
        }
        let circle = next.filter(|here| seen[*here as usize] == Seen::OnThisPath);
        if let Some(entry) = circle {
            let from = path.iter().rposition(|here| *here == entry).unwrap_or_default();
            let earliest = path[from..]
                .iter()
                .min_by_key(|here| (spans.records[**here as usize].start, **here));
            if let Some(&earliest) = earliest {
                spans.records[earliest as usize].parent = OptionalIndex::NONE;
                summary.cycles += 1;
            }
        }
        path.drain(..).for_each(|here| seen[here as usize] = Seen::Before);
    }
}

/// Gives each span without a group that of its parent in the same process, and each root that of its scope. The order is from
/// last to first, since parents usually come after their children.
fn give_groups(spans: &mut Spans, scopes: &Scopes) {
    let mut path = Vec::new();
    let mut latest = None;
    for span in (0..spans.records.len() as u32).rev() {
        let mut here = span;
        let group = loop {
            let record = &spans.records[here as usize];
            if let Some(group) = record.group.get() {
                break group;
            }
            path.push(here);
            let (resource, scope) = (record.resource, record.scope);
            let parent = record.parent.get();
            match parent.filter(|parent| spans.records[*parent as usize].resource == resource) {
                Some(parent) => here = parent,
                None => {
                    let (_, group) = latest
                        .filter(|(of, _)| *of == scope)
                        .unwrap_or_else(|| (scope, scope_group(scope, spans, scopes)));
                    latest = Some((scope, group));
                    break group;
                }
            }
        };
        path.drain(..)
            .for_each(|here| spans.records[here as usize].group = group.into());
    }
}

/// Returns the group of spans without one, by the name of their scope.
pub(super) fn scope_group(scope: u32, spans: &mut Spans, scopes: &Scopes) -> u32 {
    let name = scopes.name(scope);
    let label = if name.is_empty() { NO_GROUP } else { name };
    spans.labels.number(label.to_owned())
}
