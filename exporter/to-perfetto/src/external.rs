//! External-memory tree building for a trace whose span index exceeds the memory budget.
//!
//! Spans are processed in the order of their starts, and only those that begin together or are open at a time are held
//! (`sweep`): a nested span begins while the enclosing one is open. A log record is a child without a duration. The results
//! are sorted in temporary files by span id, where arrows are joined with the spans at their ends, and then by tree. A child
//! whose parent was closed long before gets an arrow from the parent, but not the parent's group.

mod record;
mod sweep;

use std::{collections::HashSet, io};

use pulsetrain_pipeline::spill::{Extent, MemoryBudget, Sorted, Sorter, SpillFile};

use self::{
    record::Record,
    sweep::{Sweep, SweepEvent},
};
use super::{
    PerfettoConfig, PerfettoError, PerfettoSummary,
    flows::{self, Link},
    partitions::{self, Stored},
    records,
    scopes::Scopes,
    span_trees,
    spans::Spans,
    spilled_trees::SpilledTrees,
    tree_span::{Tree, TreeSpan, array},
};

/// The kind of an arrow's endpoint, in the record for a span.
const OF_LINK: u8 = 0;
const OF_CHILD: u8 = 1;
const OWN: u8 = 2;

/// The spans of one part of a file.
#[derive(Clone, Copy)]
pub(super) struct PartSpans<'a> {
    pub(super) file: &'a SpillFile,
    pub(super) extents: &'a [Extent],
}

/// The outputs of the trees.
pub(super) struct Trees<'a> {
    pub(super) sorter: &'a mut Sorter,
    pub(super) long: &'a mut SpilledTrees,
    /// The log records on the row `logs`.
    pub(super) logs_row: &'a mut Sorter,
}

/// The state that all steps share.
struct ExternalBuild<'a> {
    room: MemoryBudget,
    config: &'a PerfettoConfig,
    summary: &'a mut PerfettoSummary,
    /// The arrows of each span, by its id.
    flow_endpoints: Sorter,
}

/// Builds the trees of the spans in a part.
pub(super) fn build_trees(
    part: PartSpans<'_>,
    spans: &mut Spans,
    scopes: &Scopes,
    config: &PerfettoConfig,
    summary: &mut PerfettoSummary,
    trees: &mut Trees<'_>,
) -> Result<(), PerfettoError> {
    let room = config.room().share(16);
    let mut build = ExternalBuild {
        flow_endpoints: Sorter::new(room.clone()),
        room,
        config,
        summary,
    };
    let by_time = build.read(part, spans)?;
    let by_id = build.sweep(by_time, (part, spans, scopes), trees.logs_row)?;
    let by_tree = build.join_arrows_with_spans(by_id)?;
    build.pack(by_tree, part, trees)
}

impl ExternalBuild<'_> {
    fn sorted(&mut self, sorter: Sorter) -> io::Result<Sorted> {
        let sorted = sorter.sorted()?;
        self.summary.spilled_bytes += sorted.spilled_bytes();
        Ok(sorted)
    }

    /// Reads the index record of every span, and sorts the records by time.
    fn read(&mut self, part: PartSpans<'_>, spans: &mut Spans) -> Result<Sorted, PerfettoError> {
        let mut by_time = Sorter::new(self.room.clone());
        let config = self.config;
        let mut number = spans.first_number;
        partitions::scan(part.file, part.extents, |stored| match stored {
            Stored::Link(Link { target, flow, .. }) => Ok(self
                .flow_endpoints
                .push((target, flow), |out| out.push(OF_LINK))?),
            Stored::LogRecord { place, bytes } => {
                let log = records::decode(bytes)?;
                let (ids, time) = (spans.record_ids(&log), records::logged_time(&log));
                let record = Record::of_log(ids, time, number, (place, bytes.len()));
                number += 1;
                Ok(by_time.push((time, 1), |out| record.pack(out))?)
            }
            Stored::Span { around, place, bytes } => {
                let Some(known) = spans.scan(bytes, around, config)? else {
                    return Ok(());
                };
                let mut record = Record::new(&known, number, place, bytes.len());
                number += 1;
                let times = spans.times.unwrap_or_default();
                span_trees::repair(&mut record.start, &mut record.end, times, self.summary);
                if known.has_links {
                    for link in flows::links_in(spans, bytes)? {
                        self.flow_endpoints
                            .push((record.id, link.flow), |out| out.push(OWN))?;
                    }
                }
                Ok(by_time.push((record.start, 0), |out| record.pack(out))?)
            }
        })?;
        spans.first_number = number;
        Ok(self.sorted(by_time)?)
    }

    /// Finds the position of each span in its tree, and sorts the spans by their ids.
    fn sweep(
        &mut self,
        mut by_time: Sorted,
        (part, spans, scopes): (PartSpans<'_>, &mut Spans, &Scopes),
        logs_row: &mut Sorter,
    ) -> Result<Sorted, PerfettoError> {
        let mut by_id = Sorter::new(self.room.clone());
        let room = self.config.room().share(4);
        let mut sweep = Sweep::new(room.bytes, self.config);
        let mut together: Vec<Record> = Vec::new();
        loop {
            let next = by_time.next_record()?.and_then(Record::unpack);
            let next = match next {
                Some(record) if !spans.is_selected_span(record.asked, record.trace, self.config) => {
                    self.summary.filtered += 1;
                    continue;
                }
                next => next,
            };
            let has_room = together.len() < sweep.max_spans_held_together();
            let goes_on = |first: &Record| has_room && next.is_some_and(|next| first.start == next.start);
            if together.first().is_some_and(|first| !goes_on(first)) {
                self.remove_duplicate_spans(&mut together, part)?;
                let mut groups = |scope| span_trees::scope_group(scope, spans, scopes);
                sweep.add(&mut together, &mut groups, self.summary);
                for found in &sweep.take_found() {
                    self.record(found, part, &mut by_id, logs_row)?;
                }
            }
            match next {
                Some(record) => together.push(record),
                None => break,
            }
        }
        sweep.end();
        for found in &sweep.take_found() {
            self.record(found, part, &mut by_id, logs_row)?;
        }
        Ok(self.sorted(by_id)?)
    }

    /// Removes duplicates of spans.
    fn remove_duplicate_spans(&mut self, together: &mut Vec<Record>, part: PartSpans<'_>) -> io::Result<()> {
        if together.len() < 2 {
            return Ok(());
        }
        together.sort_by_key(|record| (record.id, record.number));
        let mut same = HashSet::new();
        for pair in together.windows(2) {
            let [one, other] = [&pair[0], &pair[1]];
            let may_be = one.id != 0 && one.id == other.id && one.resource == other.resource;
            if may_be && one.read(part.file)? == other.read(part.file)? {
                same.insert(other.number);
            }
        }
        self.summary.duplicates += same.len() as u64;
        together.retain(|record| !same.contains(&record.number));
        Ok(())
    }

    fn record(
        &mut self,
        found: &SweepEvent,
        part: PartSpans<'_>,
        by_id: &mut Sorter,
        logs_row: &mut Sorter,
    ) -> Result<(), PerfettoError> {
        match found {
            SweepEvent::Span(record) => by_id.push((record.id, record.order), |out| record.pack(out))?,
            SweepEvent::LogOnRow(record) => {
                if let Some(flow) = records::put_on_row(&record.read(part.file)?, logs_row)? {
                    self.flow_endpoints
                        .push((record.parent, flow), |out| out.push(OWN))?;
                }
            }
            SweepEvent::Arrow { parent, flow, child } => {
                self.flow_endpoints.push((*parent, *flow), |out| {
                    let (resource, start) = child;
                    out.push(OF_CHILD);
                    out.extend_from_slice(&resource.to_le_bytes());
                    out.extend_from_slice(&start.to_le_bytes());
                })?;
            }
        }
        Ok(())
    }

    /// Joins arrows and spans, and sorts the spans by their trees.
    fn join_arrows_with_spans(&mut self, mut by_id: Sorted) -> Result<Sorted, PerfettoError> {
        let flow_endpoints = std::mem::take(&mut self.flow_endpoints);
        let mut flow_endpoints = self.sorted(flow_endpoints)?;
        let mut by_tree = Sorter::new(self.room.clone());
        let mut latest = 0;
        while let Some(record) = by_id.next_record()?.and_then(Record::unpack) {
            let is_known = record.id != 0 && record.id == latest;
            self.summary.same_ids += u64::from(is_known);
            latest = record.id;
            self.pass(&mut flow_endpoints, |id| id < record.id)?;
            let mut arrows: Vec<u64> = Vec::from_iter((record.flow != 0).then_some(record.flow));
            while let Some((id, flow)) = flow_endpoints.next_key().filter(|(id, _)| *id == record.id) {
                let endpoint = flow_endpoints.next_record()?.unwrap_or_default();
                if id == 0 {
                    continue;
                }
                let is_new = arrows.last() != Some(&flow);
                match endpoint.split_first() {
                    Some((&OF_CHILD, mut child)) if is_new => {
                        let parent = (record.resource, record.start);
                        let resource = array(&mut child).map(u32::from_le_bytes);
                        let start = array(&mut child).map(u64::from_le_bytes);
                        let child = resource.zip(start).unwrap_or(parent);
                        self.summary.add_child_flow(parent, child);
                    }
                    Some((&OF_LINK, _)) if is_new => self.summary.flows += 1,
                    _ => {}
                }
                if is_new {
                    arrows.push(flow);
                }
            }
            arrows.sort_unstable();
            arrows.dedup();
            by_tree.push((record.tree, record.order), |out| {
                record.pack(out);
                arrows
                    .iter()
                    .for_each(|flow| out.extend_from_slice(&flow.to_le_bytes()));
            })?;
        }
        self.pass(&mut flow_endpoints, |_| true)?;
        Ok(self.sorted(by_tree)?)
    }

    /// Counts the arrows whose span does not exist.
    fn pass(&mut self, flow_endpoints: &mut Sorted, ids: impl Fn(u64) -> bool) -> io::Result<()> {
        let mut latest = None;
        while let Some(endpoint) = flow_endpoints.next_key().filter(|(id, _)| ids(*id)) {
            let kind = flow_endpoints
                .next_record()?
                .and_then(|kind| kind.first().copied());
            if latest.replace(endpoint) == Some(endpoint) {
                continue;
            }
            match kind {
                Some(OF_LINK) => self.summary.links_outside += 1,
                Some(OF_CHILD) => self.summary.missing_parents += 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// Sends the trees to the sorter, each span with its message.
    fn pack(
        &mut self,
        mut by_tree: Sorted,
        part: PartSpans<'_>,
        trees: &mut Trees<'_>,
    ) -> Result<(), PerfettoError> {
        let mut open: Option<(u64, Tree)> = None;
        let mut end = |tree: Option<(u64, Tree)>, long: &mut SpilledTrees| match tree {
            Some((_, tree)) => {
                let packed = long.end()?;
                trees.sorter.push((tree.start, tree.end), |out| {
                    tree.pack(out);
                    packed.pack(out);
                })
            }
            None => Ok(()),
        };
        while let Some(bytes) = by_tree.next_record()? {
            let Some(record) = Record::unpack(bytes) else {
                break;
            };
            let (arrows, _) = bytes[Record::BYTES..].as_chunks();
            if open.is_none_or(|(number, _)| number != record.tree) {
                end(open.replace((record.tree, record.tree())), trees.long)?;
            }
            let message = record.read(part.file)?;
            trees.long.push(&TreeSpan {
                depth: record.depth,
                scope: record.scope,
                start: record.start,
                end: record.end,
                number: record.number,
                failed: record.failed,
                flows: arrows,
                name_at: record.name_at,
                is_log_record: record.is_log_record,
                bytes: &message,
            })?;
        }
        Ok(end(open, trees.long)?)
    }
}
