//! Draws trees on lanes, depth first, with the events and arrows of their spans. Trees that exceed the memory budget, or the
//! size of a file, are drawn in parts (`parts`).

mod parts;

use std::{collections::HashMap, vec};

use indexmap::IndexMap;
use pulsetrain_otlp::view::Status;
use pulsetrain_perfetto::LaneTrack;

use super::{
    PerfettoError, PerfettoSummary,
    annotations::{self, Placed, SpanExtras},
    identity,
    labels::Labels,
    lanes::Lanes,
    merge::Run,
    metrics::Metering,
    records,
    span_trees::LATEST,
    spilled_trees::Pieces,
    stack_trace,
    trace_output::{PerfettoParts, TraceOutput},
    tree_span::{Tree, TreeSpan},
    trees::TreeSink,
    values,
};

/// The spans of one process that share its rows.
#[derive(Debug)]
struct Group {
    resource: u32,
    label: u32,
    /// Its sort rank within its process: groups are ordered by their first span.
    rank: i32,
    lanes: Lanes,
    /// The run of short trees that is not yet drawn, and its lane.
    run: Option<(u32, Box<Run>)>,
}

/// Draws trees.
pub(super) struct TreeWriter<'a, P: PerfettoParts> {
    pub(super) output: TraceOutput<'a, P>,
    pub(super) labels: Labels,
    pub(super) metering: Metering<'a>,
    pub(super) summary: &'a mut PerfettoSummary,
    /// The groups by resource and label.
    groups: IndexMap<(u32, u32), Group>,
    /// The number of groups of each process.
    ranks: HashMap<u32, i32>,
}

/// A span that is open while its children are drawn.
struct Open<'s> {
    start: u64,
    end: u64,
    name: &'s [u8],
    /// The message.
    bytes: &'s [u8],
    /// Its number, and its events by time, with their indices.
    number: u64,
    events: vec::IntoIter<Placed<'s>>,
    failure: Option<Status<'s>>,
}

/// The position on a lane at which a tree is drawn.
struct LaneCursor<'s> {
    lane: LaneTrack,
    /// The group of the lane, and the index of the lane in the group.
    group: u32,
    place: u32,
    page: FilePart,
    open: Vec<Open<'s>>,
    run: Option<Run>,
    /// Spans deeper than this are part of the run.
    within: Option<u32>,
}

/// The part of a tree in the current file.
#[derive(Clone, Copy)]
struct FilePart {
    /// The size of the file before the tree, or after the spans that were drawn again.
    from: u64,
    /// The size of the slices that were drawn again.
    again: u64,
}

impl<P: PerfettoParts> TreeSink for TreeWriter<'_, P> {
    fn tree<'s>(
        &mut self,
        tree: &Tree,
        mut spans: impl Iterator<Item = TreeSpan<'s>>,
    ) -> Result<(), PerfettoError> {
        let group = self.group(tree.resource, tree.group);
        if self.is_short(tree.start, tree.end, tree.failed) {
            let Some(root) = spans.next() else {
                return Ok(());
            };
            return self.gather(group, &root, spans.count() as u64);
        }
        let mut cursor = self.cursor(group, tree)?;
        self.spans(&mut cursor, spans)?;
        self.close(&mut cursor, 0, u64::MAX)
    }

    fn spilled_tree(&mut self, tree: &Tree, pieces: Pieces<'_>) -> Result<(), PerfettoError> {
        self.in_pieces(tree, pieces)
    }
}

impl<'a, P: PerfettoParts> TreeWriter<'a, P> {
    pub(super) fn new(
        output: TraceOutput<'a, P>,
        labels: Labels,
        metering: Metering<'a>,
        summary: &'a mut PerfettoSummary,
    ) -> Self {
        Self {
            output,
            labels,
            metering,
            summary,
            groups: IndexMap::new(),
            ranks: HashMap::new(),
        }
    }

    /// Draws the pending runs of short trees, and counts the lanes.
    pub(super) fn finish_trees(&mut self) -> Result<(), PerfettoError> {
        self.summary.lanes = self
            .groups
            .values()
            .map(|group| u64::from(group.lanes.count()))
            .sum();
        (0..self.groups.len() as u32).try_for_each(|group| self.end_run(group))
    }

    /// Continues in the next file of the trace.
    pub(super) fn start_next_file(&mut self) -> Result<(), PerfettoError> {
        self.finish_trees()?;
        self.metering.finish_page(&mut self.output)?;
        Ok(self.output.start_next_file()?)
    }

    fn group(&mut self, resource: u32, label: u32) -> u32 {
        let group = self.groups.entry((resource, label));
        let number = group.index() as u32;
        group.or_insert_with(|| {
            let rank = self.ranks.entry(resource).or_default();
            *rank += 1;
            Group {
                resource,
                label,
                rank: *rank - 1,
                lanes: Lanes::default(),
                run: None,
            }
        });
        number
    }

    fn lane(&mut self, number: u32, place: u32, time: u64) -> Result<LaneTrack, PerfettoError> {
        let group = &self.groups[number as usize];
        let process = self.output.process(group.resource, time)?;
        let name = self.labels.get(group.label);
        Ok(self.output.lane((number, place), process, name, group.rank)?)
    }

    fn is_short(&self, start: u64, end: u64, failed: bool) -> bool {
        self.output.about.config.is_short(start, end) && !failed
    }

    /// Returns whether spans with this name have a separate row.
    fn is_step(&self, name: &[u8]) -> bool {
        let rows = &self.output.about.config.root_rows;
        rows.iter().any(|(step, _)| step.as_bytes() == name)
    }

    fn gap(&self) -> u64 {
        self.output.about.config.merge_below.unwrap_or_default()
    }

    /// Adds a short tree to the run of its group.
    fn gather(&mut self, number: u32, root: &TreeSpan<'_>, within: u64) -> Result<(), PerfettoError> {
        let gap = self.gap();
        let name = root.name();
        let group = &mut self.groups[number as usize];
        if let Some((_, run)) = group
            .run
            .as_mut()
            .filter(|(_, run)| run.reaches(0, root.start, gap))
        {
            run.add(root, name);
            run.within += within;
            return Ok(());
        }
        self.end_run(number)?;
        let group = &mut self.groups[number as usize];
        let mut run = Run::new(root, name);
        run.within = within;
        group.run = Some((group.lanes.take(root.start), Box::new(run)));
        Ok(())
    }

    /// Draws the pending run of a group.
    fn end_run(&mut self, number: u32) -> Result<(), PerfettoError> {
        let group = &mut self.groups[number as usize];
        let Some((place, run)) = group.run.take() else {
            return Ok(());
        };
        group.lanes.release(place, run.end);
        let lane = self.lane(number, place, run.start)?;
        self.draw_run(lane, &run)
    }

    /// Allocates a lane for a tree, and returns its cursor.
    fn cursor<'s>(&mut self, group: u32, tree: &Tree) -> Result<LaneCursor<'s>, PerfettoError> {
        let lanes = &mut self.groups[group as usize].lanes;
        let place = lanes.take(tree.start);
        lanes.release(place, tree.end);
        Ok(LaneCursor {
            lane: self.lane(group, place, tree.start)?,
            group,
            place,
            page: FilePart {
                from: self.output.trace.bytes(),
                again: 0,
            },
            open: Vec::new(),
            run: None,
            within: None,
        })
    }

    /// Draws the spans and log records of a tree, or some of them.
    fn spans<'s>(
        &mut self,
        cursor: &mut LaneCursor<'s>,
        spans: impl Iterator<Item = TreeSpan<'s>>,
    ) -> Result<(), PerfettoError> {
        for span in spans {
            if span.is_log_record {
                self.log_record(cursor, &span)?;
            } else if let (Some(run), Some(depth)) = (&mut cursor.run, cursor.within)
                && span.depth > depth
            {
                run.within += 1;
            } else if self.is_short(span.start, span.end, span.failed) {
                self.put_into_run(cursor, &span)?;
            } else {
                self.close(cursor, span.depth, span.start)?;
                if self.output.is_full() {
                    self.cut(cursor)?;
                }
                let open = self.begin(cursor.lane, &span)?;
                if span.depth == 0 && self.is_step(open.name) {
                    self.summary.observe_step(open.start, open.end);
                }
                if let Some(failure) = open.failure {
                    self.summary.record_error(open.start, open.end);
                    let resource = self.groups[cursor.group as usize].resource;
                    self.output.error(resource, (open.end, open.name), &failure)?;
                }
                cursor.open.push(open);
            }
        }
        Ok(())
    }

    /// Draws a log record on the lane of its span. Spans that last longer remain open: their children may follow.
    fn log_record(
        &mut self,
        cursor: &mut LaneCursor<'_>,
        record: &TreeSpan<'_>,
    ) -> Result<(), PerfettoError> {
        let has_ended = |open: &Open<'_>| open.end <= record.start;
        while cursor.open.len() > record.depth as usize && cursor.open.last().is_some_and(has_ended) {
            self.close(cursor, cursor.open.len() as u32 - 1, record.start)?;
        }
        if self.output.is_full() {
            self.cut(cursor)?;
        }
        let resource = self.groups[cursor.group as usize].resource;
        let span_lane = Some((cursor.lane, resource));
        records::draw(
            record.bytes,
            record.start,
            span_lane,
            &mut self.output,
            self.summary,
        )
    }

    /// Adds a short span to the open run, or begins a new run.
    fn put_into_run(
        &mut self,
        cursor: &mut LaneCursor<'_>,
        span: &TreeSpan<'_>,
    ) -> Result<(), PerfettoError> {
        let name = span.name();
        let gap = self.gap();
        match &mut cursor.run {
            Some(run) if run.reaches(span.depth, span.start, gap) => run.add(span, name),
            _ => {
                self.close(cursor, span.depth, span.start)?;
                cursor.run = Some(Run::new(span, name));
            }
        }
        cursor.within = Some(span.depth);
        Ok(())
    }

    /// Ends the run and all spans down to a depth, and draws the events of the innermost open span up to a time.
    fn close(&mut self, cursor: &mut LaneCursor<'_>, depth: u32, time: u64) -> Result<(), PerfettoError> {
        if cursor.run.is_some()
            && let Some(run) = cursor.run.take()
        {
            self.draw_run(cursor.lane, &run)?;
            cursor.within = None;
        }
        while cursor.open.len() > depth as usize
            && let Some(mut open) = cursor.open.pop()
        {
            self.events(cursor.lane, &mut open, u64::MAX)?;
            self.output.trace.end(cursor.lane, open.end)?;
        }
        match cursor.open.last_mut() {
            Some(open) => self.events(cursor.lane, open, time),
            None => Ok(()),
        }
    }

    #[inline]
    fn begin<'s>(&mut self, lane: LaneTrack, drawn: &TreeSpan<'s>) -> Result<Open<'s>, PerfettoError> {
        let about = self.output.about;
        let mut extras = Ok(SpanExtras::default());
        let (name, fields) = drawn.parts();
        self.output.trace.begin(lane, drawn.start, name, |event| {
            extras = annotations::span(drawn, fields, about, event);
        })?;
        self.summary.spans += 1;
        let SpanExtras { events, failure } = extras?;
        Ok(Open {
            start: drawn.start,
            end: drawn.end,
            name,
            bytes: drawn.bytes,
            number: drawn.number,
            events: events.into_iter(),
            failure,
        })
    }

    fn draw_run(&mut self, lane: LaneTrack, run: &Run) -> Result<(), PerfettoError> {
        if let Some(span) = run.single() {
            let mut open = self.begin(lane, &span)?;
            self.events(lane, &mut open, u64::MAX)?;
        } else {
            let scope = self.output.about.scopes.name(run.scope());
            self.output.trace.begin(lane, run.start, run.name(), |event| {
                annotations::mark(event, scope, run.flows());
                run.describe(&mut event.annotations());
            })?;
            self.summary.merged += run.count + run.within;
            self.summary.merged_slices += 1;
        }
        Ok(self.output.trace.end(lane, run.end)?)
    }

    /// Draws the events of a span up to a time.
    #[inline]
    fn events(&mut self, lane: LaneTrack, open: &mut Open<'_>, until: u64) -> Result<(), PerfettoError> {
        while let Some((time, place, event)) = open.events.as_slice().first().copied()
            && time <= until
        {
            open.events.next();
            self.summary.events += 1;
            self.summary.cover(time);
            self.summary.without_time += u64::from(event.time_unix_nano == 0);
            self.summary.beyond_range += u64::from(event.time_unix_nano > LATEST);
            let policy = &self.output.about.config.attributes;
            let mut outcome = Ok(());
            self.output
                .trace
                .instant(lane, time, event.name.as_bytes(), |out| {
                    if policy.is_full() {
                        identity::add_event(open.number, place, &event, time, &mut out.annotations());
                    }
                    if event.name.as_bytes() == stack_trace::EVENT {
                        stack_trace::add(event.attributes, policy, out);
                    }
                    outcome = values::attributes(event.attributes, policy, &mut out.annotations());
                })?;
            outcome?;
        }
        Ok(())
    }
}
