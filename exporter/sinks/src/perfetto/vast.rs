//! Trees of spans of which not even what trees are made of fits into memory: one trace, mostly.
//!
//! Spans come in the order of their starts, and only those that begin together or are open at a time are held
//! (`sweep`): a span that stands within another begins while that is open. What each came to goes through temporary files by
//! its id, where arrows meet the spans that they are from and to, and then by its tree. A parent that was closed long before its
//! child begins gives it an arrow, but no group.

mod record;
mod sweep;

use std::{collections::HashSet, io};

use pulsetrain_pipeline::spill::{Extent, Room, Sorted, Sorter, SpillFile};

use self::{
    record::Record,
    sweep::{Found, Sweep},
};
use super::{
    PerfettoConfig, PerfettoError, PerfettoSummary,
    drawn::{Drawn, Tree},
    flows::{self, Link},
    forest,
    long::LongTrees,
    partitions::{self, Stored},
    scopes::Scopes,
    spans::Spans,
};

/// What an arrow is, as the span at its end finds it.
const OF_LINK: u8 = 0;
const OF_CHILD: u8 = 1;
const OWN: u8 = 2;

/// Spans of one part of a file.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) file: &'a SpillFile,
    pub(super) extents: &'a [Extent],
}

/// Where trees go.
pub(super) struct Trees<'a> {
    pub(super) sorter: &'a mut Sorter,
    pub(super) long: &'a mut LongTrees,
}

/// What all steps share.
struct Growth<'a> {
    room: Room,
    config: &'a PerfettoConfig,
    summary: &'a mut PerfettoSummary,
    /// The arrows of each span, by its id.
    stations: Sorter,
}

/// Makes trees of the spans of a part.
pub(super) fn grow(
    part: Part<'_>,
    spans: &mut Spans,
    scopes: &Scopes,
    config: &PerfettoConfig,
    summary: &mut PerfettoSummary,
    trees: &mut Trees<'_>,
) -> Result<(), PerfettoError> {
    let room = config.room().share(16);
    let mut growth = Growth {
        stations: Sorter::new(room.clone()),
        room,
        config,
        summary,
    };
    let by_time = growth.read(part, spans)?;
    let by_id = growth.sweep(by_time, part, spans, scopes)?;
    let by_tree = growth.meet(by_id)?;
    growth.pack(by_tree, part, trees)
}

impl Growth<'_> {
    fn sorted(&mut self, sorter: Sorter) -> io::Result<Sorted> {
        let sorted = sorter.sorted()?;
        self.summary.spilled_bytes += sorted.spilled_bytes();
        Ok(sorted)
    }

    /// Reads what is to be known of every span, and brings it into the order of time.
    fn read(&mut self, part: Part<'_>, spans: &mut Spans) -> Result<Sorted, PerfettoError> {
        let mut by_time = Sorter::new(self.room.clone());
        let config = self.config;
        let mut number = spans.first_number;
        partitions::scan(part.file, part.extents, |stored| match stored {
            Stored::Link(Link { target, flow, .. }) => {
                Ok(self.stations.push((target, flow), |out| out.push(OF_LINK))?)
            }
            Stored::Span { around, place, bytes } => {
                let Some(known) = spans.looked_at(bytes, around, config)? else {
                    return Ok(());
                };
                let mut record = Record::of(&known, number, place, bytes.len());
                number += 1;
                let times = spans.times.unwrap_or_default();
                forest::mend(&mut record.start, &mut record.end, times, self.summary);
                if known.has_links {
                    for link in flows::links_in(spans, bytes)? {
                        self.stations.push((record.id, link.flow), |out| out.push(OWN))?;
                    }
                }
                Ok(by_time.push((record.start, 0), |out| record.pack(out))?)
            }
        })?;
        spans.first_number = number;
        Ok(self.sorted(by_time)?)
    }

    /// Finds the place of each span in its tree, and brings them into the order of their ids.
    fn sweep(
        &mut self,
        mut by_time: Sorted,
        part: Part<'_>,
        spans: &mut Spans,
        scopes: &Scopes,
    ) -> Result<Sorted, PerfettoError> {
        let mut by_id = Sorter::new(self.room.clone());
        let room = self.config.room().share(4);
        let mut sweep = Sweep::new(room.bytes, self.config.merge_below.is_some());
        let mut together: Vec<Record> = Vec::new();
        loop {
            let next = by_time.next_record()?.and_then(Record::unpack);
            let next = match next {
                Some(record) if !spans.is_asked(record.asked, record.trace, self.config) => {
                    self.summary.filtered += 1;
                    continue;
                }
                next => next,
            };
            let has_room = together.len() < sweep.most_together();
            let goes_on = |first: &Record| has_room && next.is_some_and(|next| first.start == next.start);
            if together.first().is_some_and(|first| !goes_on(first)) {
                self.leave_once(&mut together, part)?;
                let mut groups = |scope| forest::scope_group(scope, spans, scopes);
                sweep.add(&mut together, &mut groups, self.summary);
                for found in &sweep.take_found() {
                    self.note(found, &mut by_id)?;
                }
            }
            match next {
                Some(record) => together.push(record),
                None => break,
            }
        }
        sweep.end();
        for found in &sweep.take_found() {
            self.note(found, &mut by_id)?;
        }
        Ok(self.sorted(by_id)?)
    }

    /// Leaves spans that came twice once.
    fn leave_once(&mut self, together: &mut Vec<Record>, part: Part<'_>) -> io::Result<()> {
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

    fn note(&mut self, found: &Found, by_id: &mut Sorter) -> io::Result<()> {
        match found {
            Found::Span(record) => by_id.push((record.id, record.order), |out| record.pack(out)),
            Found::Arrow { parent, flow } => self.stations.push((*parent, *flow), |out| out.push(OF_CHILD)),
        }
    }

    /// Lets arrows and spans meet, and brings the spans into the order of their trees.
    fn meet(&mut self, mut by_id: Sorted) -> Result<Sorted, PerfettoError> {
        let stations = std::mem::take(&mut self.stations);
        let mut stations = self.sorted(stations)?;
        let mut by_tree = Sorter::new(self.room.clone());
        let mut latest = 0;
        while let Some(record) = by_id.next_record()?.and_then(Record::unpack) {
            let is_known = record.id != 0 && record.id == latest;
            self.summary.same_ids += u64::from(is_known);
            latest = record.id;
            self.pass(&mut stations, |id| id < record.id)?;
            let mut arrows: Vec<u64> = Vec::from_iter((record.flow != 0).then_some(record.flow));
            while let Some((id, flow)) = stations.next_key().filter(|(id, _)| *id == record.id) {
                let kind = stations.next_record()?.and_then(|kind| kind.first().copied());
                if id != 0 {
                    let is_new = arrows.last() != Some(&flow);
                    self.summary.flows += u64::from(kind != Some(OWN) && is_new);
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
        self.pass(&mut stations, |_| true)?;
        Ok(self.sorted(by_tree)?)
    }

    /// Counts the arrows that meet no span.
    fn pass(&mut self, stations: &mut Sorted, ids: impl Fn(u64) -> bool) -> io::Result<()> {
        let mut latest = None;
        while let Some(station) = stations.next_key().filter(|(id, _)| ids(*id)) {
            let kind = stations.next_record()?.and_then(|kind| kind.first().copied());
            if latest.replace(station) == Some(station) {
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

    /// Hands on the trees, each span with its message.
    fn pack(
        &mut self,
        mut by_tree: Sorted,
        part: Part<'_>,
        trees: &mut Trees<'_>,
    ) -> Result<(), PerfettoError> {
        let mut open: Option<(u64, Tree)> = None;
        let mut end = |tree: Option<(u64, Tree)>, long: &mut LongTrees| match tree {
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
            trees.long.push(&Drawn {
                depth: record.depth,
                scope: record.scope,
                start: record.start,
                end: record.end,
                number: record.number,
                failed: record.failed,
                flows: arrows,
                name_at: record.name_at,
                bytes: &message,
            })?;
        }
        Ok(end(open, trees.long)?)
    }
}
