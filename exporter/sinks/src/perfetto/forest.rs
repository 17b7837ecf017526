//! From spans with ids to trees: parents found, circles cut, times mended, groups given.

use pulsetrain_otlp::{
    WireError,
    view::{Message, Span},
};

use super::{
    PerfettoSummary,
    scopes::Scopes,
    spans::{Identities, Spans},
};

/// The label of spans that say nothing of a group.
const NO_GROUP: &str = "spans";

/// Links the spans to each other and mends what does not fit.
pub(super) fn grow(spans: &mut Spans, scopes: &Scopes, summary: &mut PerfettoSummary) -> Identities {
    let identities = spans.identify(summary);
    mend_times(spans, summary);
    link(spans, &identities, summary);
    cut_cycles(spans, summary);
    give_groups(spans, scopes);
    identities
}

/// Gives every span a start and an end that can be drawn.
fn mend_times(spans: &mut Spans, summary: &mut PerfettoSummary) {
    let times = spans.records.iter().flat_map(|span| [span.start, span.end]);
    let (first, last) = times
        .filter(|time| *time != 0)
        .fold((u64::MAX, 0), |(first, last), time| {
            (first.min(time), last.max(time))
        });
    for span in &mut spans.records {
        if span.start == 0 {
            summary.without_time += 1;
            // Nothing is known but the end, if that: a start in 1970 would hide everything else.
            span.start = if span.end == 0 { first.min(last) } else { span.end };
        }
        if span.end == 0 {
            summary.unfinished += 1;
            span.end = last.max(span.start);
        } else if span.end < span.start {
            summary.end_before_start += 1;
            span.end = span.start;
        }
    }
}

fn link(spans: &mut Spans, identities: &Identities, summary: &mut PerfettoSummary) {
    for span in 0..spans.records.len() as u32 {
        match spans.named_parent(span, identities) {
            Ok(parent) => spans.records[span as usize].parent = parent,
            Err(()) => summary.missing_parents += 1,
        }
    }
}

/// Makes the earliest span of each circle of parents a root.
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
            next = spans.records[here as usize].parent;
        }
        let circle = next.filter(|here| seen[*here as usize] == Seen::OnThisPath);
        if let Some(entry) = circle {
            let from = path.iter().rposition(|here| *here == entry).unwrap_or_default();
            let earliest = path[from..]
                .iter()
                .min_by_key(|here| (spans.records[**here as usize].start, **here));
            if let Some(&earliest) = earliest {
                spans.records[earliest as usize].parent = None;
                summary.cycles += 1;
            }
        }
        path.drain(..).for_each(|here| seen[here as usize] = Seen::Before);
    }
}

/// Gives each span without a group that of its parent in the same process, and each root that of its scope.
fn give_groups(spans: &mut Spans, scopes: &Scopes) {
    let mut path = Vec::new();
    for span in 0..spans.records.len() as u32 {
        let mut here = span;
        let group = loop {
            let record = spans.records[here as usize];
            if let Some(group) = record.group {
                break group;
            }
            path.push(here);
            let local = record
                .parent
                .filter(|parent| spans.records[*parent as usize].resource == record.resource);
            match local {
                Some(parent) => here = parent,
                None => {
                    let name = scopes.name(record.scope);
                    let label = if name.is_empty() { NO_GROUP } else { name };
                    break spans.labels.number(label.to_owned());
                }
            }
        };
        path.drain(..)
            .for_each(|here| spans.records[here as usize].group = Some(group));
    }
}

/// The arrows of a trace: for each span the flows that it is a station of.
#[derive(Debug, Default)]
pub(super) struct Flows {
    stations: Vec<(u32, u64)>,
    count: u64,
}

impl Flows {
    /// Adds an arrow.
    pub(super) fn add(&mut self, from: u32, to: u32) {
        self.count += 1;
        let id = self.count;
        self.stations.extend([(from, id), (to, id)]);
    }

    /// Adds an arrow for every link to a span that is there.
    pub(super) fn add_links(
        &mut self,
        spans: &Spans,
        identities: &Identities,
        summary: &mut PerfettoSummary,
    ) -> Result<(), WireError> {
        for to in 0..spans.records.len() as u32 {
            if !spans.records[to as usize].has_links {
                continue;
            }
            for link in Span::decode(spans.bytes(to))?.links {
                let link = link?;
                match spans.find(link.trace_id, link.span_id, identities) {
                    Some(from) => self.add(from, to),
                    None => summary.links_outside += 1,
                }
            }
        }
        Ok(())
    }

    /// Closes the list; no arrow is added afterwards.
    pub(super) fn close(&mut self, summary: &mut PerfettoSummary) {
        self.stations.sort_unstable();
        summary.flows = self.count;
    }

    /// The flows of a span.
    pub(super) fn of(&self, span: u32) -> impl Iterator<Item = u64> {
        let start = self.stations.partition_point(|(other, _)| *other < span);
        let from = self.stations[start..].iter();
        from.take_while(move |(other, _)| *other == span)
            .map(|(_, id)| *id)
    }
}
