//! Trees onto lanes, depth first, with the events and arrows of their spans. Those that are larger than memory, or than a file
//! of the trace, are drawn in parts (`parts`).

mod parts;

use std::{collections::HashMap, vec};

use pulsetrain_perfetto::LaneTrack;

use super::{
    PerfettoError, PerfettoSummary,
    canvas::{Canvas, PerfettoParts},
    drawn::{Drawn, Tree},
    identity,
    labels::Labels,
    lanes::Lanes,
    long::Pieces,
    merge::Run,
    metrics::Metering,
    tell::{self, Placed},
    trees::Painter,
    values,
};

/// The spans of one process that share its rows.
#[derive(Debug)]
struct Group {
    resource: u32,
    label: u32,
    /// Its place within its process: the group that begins first stands first.
    rank: i32,
    lanes: Lanes,
    /// Short trees that are drawn together once the last has come, and their lane.
    run: Option<(u32, Run)>,
}

/// Draws trees.
pub(super) struct Drawing<'a, P: PerfettoParts> {
    pub(super) canvas: Canvas<'a, P>,
    pub(super) labels: Labels,
    pub(super) metering: Metering<'a>,
    pub(super) summary: &'a mut PerfettoSummary,
    groups: Vec<Group>,
    index: HashMap<(u32, u32), u32>,
    /// How many groups each process has.
    ranks: HashMap<u32, i32>,
}

/// A span that is open while its children are drawn.
struct Open<'s> {
    start: u64,
    end: u64,
    name: &'s [u8],
    /// The message.
    bytes: &'s [u8],
    /// Its number, and its events by time with their places among each other.
    number: u64,
    events: vec::IntoIter<Placed<'s>>,
}

/// Where a lane is drawn at.
struct Pen<'s> {
    lane: LaneTrack,
    /// The group of the lane, and its place there.
    group: u32,
    place: u32,
    page: Page,
    open: Vec<Open<'s>>,
    run: Option<Run>,
    /// Spans deeper than this are part of the run.
    within: Option<u32>,
}

/// What of a tree is in the file that is being written.
#[derive(Clone, Copy)]
struct Page {
    /// How large the file was before the tree, or behind what was drawn in it again.
    from: u64,
    /// The bytes of what was drawn again.
    again: u64,
}

impl<P: PerfettoParts> Painter for Drawing<'_, P> {
    fn tree<'s>(
        &mut self,
        tree: &Tree,
        mut spans: impl Iterator<Item = Drawn<'s>>,
    ) -> Result<(), PerfettoError> {
        let group = self.group(tree.resource, tree.group);
        if self.is_short(tree.start, tree.end, tree.failed) {
            let Some(root) = spans.next() else {
                return Ok(());
            };
            return self.gather(group, &root, spans.count() as u64);
        }
        let mut pen = self.pen(group, tree)?;
        self.spans(&mut pen, spans)?;
        self.close(&mut pen, 0, u64::MAX)
    }

    fn long_tree(&mut self, tree: &Tree, pieces: Pieces<'_>) -> Result<(), PerfettoError> {
        self.in_pieces(tree, pieces)
    }
}

impl<'a, P: PerfettoParts> Drawing<'a, P> {
    pub(super) fn new(
        canvas: Canvas<'a, P>,
        labels: Labels,
        metering: Metering<'a>,
        summary: &'a mut PerfettoSummary,
    ) -> Self {
        Self {
            canvas,
            labels,
            metering,
            summary,
            groups: Vec::new(),
            index: HashMap::new(),
            ranks: HashMap::new(),
        }
    }

    /// Draws the short trees that were gathered, and counts the lanes.
    pub(super) fn finish_trees(&mut self) -> Result<(), PerfettoError> {
        self.summary.lanes = self
            .groups
            .iter()
            .map(|group| u64::from(group.lanes.count()))
            .sum();
        (0..self.groups.len() as u32).try_for_each(|group| self.end_run(group))
    }

    /// Goes on in the next file of the trace.
    pub(super) fn turn_page(&mut self) -> Result<(), PerfettoError> {
        self.finish_trees()?;
        self.metering.finish_page(&mut self.canvas)?;
        Ok(self.canvas.turn_page()?)
    }

    fn group(&mut self, resource: u32, label: u32) -> u32 {
        let next = self.groups.len() as u32;
        *self.index.entry((resource, label)).or_insert_with(|| {
            let rank = self.ranks.entry(resource).or_default();
            self.groups.push(Group {
                resource,
                label,
                rank: *rank,
                lanes: Lanes::default(),
                run: None,
            });
            *rank += 1;
            next
        })
    }

    fn lane(&mut self, number: u32, place: u32, time: u64) -> Result<LaneTrack, PerfettoError> {
        let group = &self.groups[number as usize];
        let process = self.canvas.process(group.resource, time)?;
        let name = self.labels.get(group.label);
        Ok(self.canvas.lane((number, place), process, name, group.rank)?)
    }

    fn is_short(&self, start: u64, end: u64, failed: bool) -> bool {
        let below = self.canvas.about.config.merge_below;
        below.is_some_and(|below| end - start < below && !failed)
    }

    fn gap(&self) -> u64 {
        self.canvas.about.config.merge_below.unwrap_or_default()
    }

    /// Takes a short tree into the run of its group.
    fn gather(&mut self, number: u32, root: &Drawn<'_>, within: u64) -> Result<(), PerfettoError> {
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
        let mut run = Run::of(root, name);
        run.within = within;
        group.run = Some((group.lanes.take(root.start), run));
        Ok(())
    }

    /// Draws the short trees that were gathered of a group.
    fn end_run(&mut self, number: u32) -> Result<(), PerfettoError> {
        let group = &mut self.groups[number as usize];
        let Some((place, run)) = group.run.take() else {
            return Ok(());
        };
        group.lanes.release(place, run.end);
        let lane = self.lane(number, place, run.start)?;
        self.draw_run(lane, &run)
    }

    /// Where a tree is drawn at.
    fn pen<'s>(&mut self, group: u32, tree: &Tree) -> Result<Pen<'s>, PerfettoError> {
        let lanes = &mut self.groups[group as usize].lanes;
        let place = lanes.take(tree.start);
        lanes.release(place, tree.end);
        Ok(Pen {
            lane: self.lane(group, place, tree.start)?,
            group,
            place,
            page: Page {
                from: self.canvas.trace.bytes(),
                again: 0,
            },
            open: Vec::new(),
            run: None,
            within: None,
        })
    }

    /// Draws the spans of a tree, or some of them.
    fn spans<'s>(
        &mut self,
        pen: &mut Pen<'s>,
        spans: impl Iterator<Item = Drawn<'s>>,
    ) -> Result<(), PerfettoError> {
        for span in spans {
            if let (Some(run), Some(depth)) = (&mut pen.run, pen.within)
                && span.depth > depth
            {
                run.within += 1;
            } else if self.is_short(span.start, span.end, span.failed) {
                self.put_into_run(pen, &span)?;
            } else {
                self.close(pen, span.depth, span.start)?;
                if self.canvas.is_full() {
                    self.cut(pen)?;
                }
                let open = self.begin(pen.lane, &span)?;
                pen.open.push(open);
            }
        }
        Ok(())
    }

    /// Takes a short span into the run that is open, or begins one.
    fn put_into_run(&mut self, pen: &mut Pen<'_>, span: &Drawn<'_>) -> Result<(), PerfettoError> {
        let name = span.name();
        let gap = self.gap();
        match &mut pen.run {
            Some(run) if run.reaches(span.depth, span.start, gap) => run.add(span, name),
            _ => {
                self.close(pen, span.depth, span.start)?;
                pen.run = Some(Run::of(span, name));
            }
        }
        pen.within = Some(span.depth);
        Ok(())
    }

    /// Ends the run and all spans down to a depth, and draws the events of what stays open up to a time.
    fn close(&mut self, pen: &mut Pen<'_>, depth: u32, time: u64) -> Result<(), PerfettoError> {
        if pen.run.is_some()
            && let Some(run) = pen.run.take()
        {
            self.draw_run(pen.lane, &run)?;
            pen.within = None;
        }
        while pen.open.len() > depth as usize
            && let Some(mut open) = pen.open.pop()
        {
            self.events(pen.lane, &mut open, u64::MAX)?;
            self.canvas.trace.end(pen.lane, open.end)?;
        }
        match pen.open.last_mut() {
            Some(open) => self.events(pen.lane, open, time),
            None => Ok(()),
        }
    }

    #[inline]
    fn begin<'s>(&mut self, lane: LaneTrack, drawn: &Drawn<'s>) -> Result<Open<'s>, PerfettoError> {
        let about = self.canvas.about;
        let mut told = Ok(Vec::new());
        let (name, fields) = drawn.parts();
        self.canvas.trace.begin(lane, drawn.start, name, |event| {
            told = tell::span(drawn, fields, about, event);
        })?;
        self.summary.spans += 1;
        Ok(Open {
            start: drawn.start,
            end: drawn.end,
            name,
            bytes: drawn.bytes,
            number: drawn.number,
            events: told?.into_iter(),
        })
    }

    fn draw_run(&mut self, lane: LaneTrack, run: &Run) -> Result<(), PerfettoError> {
        if let Some(span) = run.single() {
            let mut open = self.begin(lane, &span)?;
            self.events(lane, &mut open, u64::MAX)?;
        } else {
            let scope = self.canvas.about.scopes.name(run.scope());
            self.canvas.trace.begin(lane, run.start, run.name(), |event| {
                tell::mark(event, scope, run.flows());
                run.describe(&mut event.annotations());
            })?;
            self.summary.merged += run.count + run.within;
            self.summary.merged_slices += 1;
        }
        Ok(self.canvas.trace.end(lane, run.end)?)
    }

    /// Draws the events of a span up to a time.
    #[inline]
    fn events(&mut self, lane: LaneTrack, open: &mut Open<'_>, until: u64) -> Result<(), PerfettoError> {
        while let Some((time, place, event)) = open.events.as_slice().first().copied()
            && time <= until
        {
            open.events.next();
            self.summary.events += 1;
            self.summary.without_time += u64::from(event.time_unix_nano == 0);
            let policy = &self.canvas.about.config.attributes;
            let mut outcome = Ok(());
            self.canvas
                .trace
                .instant(lane, time, event.name.as_bytes(), |out| {
                    if policy.is_full() {
                        identity::add_event(open.number, place, &event, time, &mut out.annotations());
                    }
                    outcome = values::attributes(event.attributes, policy, &mut out.annotations());
                })?;
            outcome?;
        }
        Ok(())
    }
}
