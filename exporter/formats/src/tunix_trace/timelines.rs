//! Parses version 2 (`tunix/perf/experimental/trace_writer.py`): one track a timeline, with lanes where slices overlap, in
//! order of time. Slices carry their step. The format has no tree, so nesting is computed here.
//!
//! A slice is recorded when all events of its end time have been read. Tunix rewrites the file with every step: the ids of
//! recorded slices are kept, so no slice is recorded twice.

use std::collections::BTreeMap;

use pulsetrain_otlp::write::SpanLink;
use pulsetrain_perfetto::Track;
use serde_json::Value as Json;

use super::{
    names::{self, UnknownNames},
    slice_name::SliceName,
    slice_span::SliceSpan,
    times::{Interval, StepTimes},
    tracks::TrackTree,
    wall::WallClock,
};
use crate::seen_ids::SeenIds;
use pulsetrain_record::{Recorder, ids};

/// Converts slices of version 2.
#[derive(Debug, Default)]
pub(super) struct Timelines {
    tracks: TrackTree,
    unknown: UnknownNames,
    /// The slices of each timeline that are open or ended at the current time, in order of time.
    open: BTreeMap<u64, Vec<Slice>>,
    /// The current time of the trace.
    now: u64,
    /// The slices that ended at the current time, as timeline and number, and the number of those recorded.
    ended: Vec<(u64, u64)>,
    recorded: usize,
    /// The queues that began at the current time, with their timelines. A queue has the step of the work that waits in it.
    queued: Vec<(u64, u64)>,
    next_number: u64,
    /// The newest step and its first span.
    newest: Option<(i64, [u8; 8])>,
    times: BTreeMap<i64, StepTimes>,
    /// The last step whose times were recorded.
    recorded_step: Option<i64>,
    /// The last step that a previous follower recorded. Steps up to it are replayed to restore sums.
    restored_step: Option<i64>,
    /// The ids of the recorded slices.
    seen: SeenIds,
}

/// A slice that has begun.
#[derive(Debug)]
struct Slice {
    lane: u64,
    /// The number of the slice in order of begin.
    number: u64,
    name: String,
    parsed: SliceName,
    step: Option<i64>,
    id: [u8; 8],
    start: u64,
    end: Option<u64>,
    link: Option<(i64, [u8; 8])>,
}

impl Timelines {
    /// Restarts at the beginning of a rewritten file.
    pub(super) fn restart(&mut self) {
        self.seen.begin_pass();
        *self = Self {
            seen: std::mem::take(&mut self.seen),
            recorded_step: self.recorded_step,
            restored_step: self.restored_step,
            unknown: std::mem::take(&mut self.unknown),
            ..Self::default()
        };
    }

    /// Returns the state for the next follower.
    pub(super) fn snapshot(&self) -> Option<Json> {
        self.seen.to_json(self.recorded_step.max(self.restored_step))
    }

    /// Restores the state of a previous follower. Returns `false` if the state is invalid.
    pub(super) fn restore(&mut self, state: &Json) -> bool {
        let Some((seen, step)) = SeenIds::of_json(state) else {
            return false;
        };
        (self.seen, self.restored_step) = (seen, step);
        true
    }

    /// Adds a track.
    pub(super) fn track(&mut self, track: &Track, wall: &WallClock, recorder: &mut Recorder<'_>) {
        // Slices that ended before this track have the old timeline.
        self.record_all_ended(wall, recorder);
        self.tracks.insert(track.uuid, track.parent, &track.name);
    }

    /// Opens a slice.
    pub(super) fn begin(
        &mut self,
        uuid: u64,
        time: u64,
        name: String,
        wall: &WallClock,
        recorder: &mut Recorder<'_>,
    ) {
        self.advance_to(time, wall, recorder);
        let (timeline_id, timeline) = self.tracks.timeline_of(uuid);
        let parsed = SliceName::parse(&name);
        self.unknown.report_once(&parsed, recorder);
        let open = self.open.entry(timeline_id).or_default();
        let same = |slice: &&Slice| slice.start == time && slice.name == name;
        let ordinal = open.iter().filter(same).count() as u64;
        let id = ids::work_span(recorder.run(), &timeline.name, &name, time, ordinal);
        let enclosing = open
            .iter()
            .rfind(|slice| !timeline.is_device && slice.end.is_none());
        let step = parsed.step.or_else(|| enclosing?.step);
        if parsed.queued.is_some() && step.is_none() {
            self.queued.push((timeline_id, self.next_number));
        }
        open.push(Slice {
            lane: uuid,
            number: self.next_number,
            name,
            step,
            id,
            start: time,
            end: None,
            link: self.newest,
            parsed,
        });
        self.next_number += 1;
        if let Some(step) = step {
            self.observe_step(step, id, wall, recorder);
        }
    }

    /// Ends the innermost slice of a lane. Returns `false` if no slice was open.
    pub(super) fn close(
        &mut self,
        uuid: u64,
        time: u64,
        wall: &WallClock,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        self.advance_to(time, wall, recorder);
        let timeline_id = self.tracks.timeline_of(uuid).0;
        let open = self.open.entry(timeline_id).or_default();
        let innermost = open
            .iter_mut()
            .rfind(|slice| slice.lane == uuid && slice.end.is_none());
        let Some(slice) = innermost else {
            return false;
        };
        slice.end = Some(time);
        self.ended.push((timeline_id, slice.number));
        true
    }

    /// Ends the trace. Open slices end with it, and every step with training is complete.
    pub(super) fn end(&mut self, wall: &WallClock, recorder: &mut Recorder<'_>) {
        self.record_all_ended(wall, recorder);
        for (timeline_id, slices) in std::mem::take(&mut self.open) {
            for slice in &slices {
                let parent = parent_of(slice, self.now, &slices, self.is_device(timeline_id));
                let span = self.span(timeline_id, slice, self.now, parent, wall, recorder);
                SliceSpan {
                    is_unfinished: true,
                    ..span
                }
                .record(recorder);
            }
        }
        self.record_steps_to(i64::MAX, wall, recorder);
    }

    /// Records the slices that have ended, at the end of the available data. Slices that began at the current time wait for
    /// more events of that time.
    pub(super) fn pause(&mut self, wall: &WallClock, recorder: &mut Recorder<'_>) {
        let is_due = |slice: &Slice, now| slice.start != now;
        self.record_ended(is_due, wall, recorder);
    }

    /// Records the slices that have ended, in order of their ends, up to the first that is not due.
    fn record_ended(
        &mut self,
        is_due: impl Fn(&Slice, u64) -> bool,
        wall: &WallClock,
        recorder: &mut Recorder<'_>,
    ) {
        while let Some(&(timeline_id, number)) = self.ended.get(self.recorded) {
            let slices = self
                .open
                .get_mut(&timeline_id)
                .map(std::mem::take)
                .unwrap_or_default();
            let found = slices.binary_search_by_key(&number, |slice| slice.number);
            let slice = found.ok().map(|at| &slices[at]);
            let is_due = slice.is_none_or(|slice| is_due(slice, self.now));
            if let Some(slice) = slice.filter(|_| is_due) {
                self.record_slice(timeline_id, slice, &slices, wall, recorder);
            }
            if let Some(open) = self.open.get_mut(&timeline_id) {
                *open = slices;
            }
            if !is_due {
                return;
            }
            self.recorded += 1;
        }
    }

    fn record_slice(
        &mut self,
        timeline_id: u64,
        slice: &Slice,
        slices: &[Slice],
        wall: &WallClock,
        recorder: &mut Recorder<'_>,
    ) {
        let Some(end) = slice.end else { return };
        if self.seen.is_new(slice.id, end) {
            let parent = parent_of(slice, end, slices, self.is_device(timeline_id));
            self.span(timeline_id, slice, end, parent, wall, recorder)
                .record(recorder);
        }
        self.count(timeline_id, slice, end);
    }

    /// Advances the current time and records all slices that ended before it.
    fn advance_to(&mut self, time: u64, wall: &WallClock, recorder: &mut Recorder<'_>) {
        if time != self.now {
            self.record_all_ended(wall, recorder);
            self.now = time;
        }
    }

    fn record_all_ended(&mut self, wall: &WallClock, recorder: &mut Recorder<'_>) {
        for (timeline_id, number) in std::mem::take(&mut self.queued) {
            self.find_step(timeline_id, number);
        }
        self.record_ended(|_, _| true, wall, recorder);
        self.recorded = 0;
        for (timeline_id, _) in std::mem::take(&mut self.ended) {
            if let Some(slices) = self.open.get_mut(&timeline_id) {
                slices.retain(|slice| slice.end.is_none());
            }
        }
    }

    /// Sets the step of a queue to that of the work that began at the same nanosecond on a host thread.
    fn find_step(&mut self, timeline_id: u64, number: u64) {
        let of = |slices: &[Slice]| slices.iter().position(|slice| slice.number == number);
        let Some(queue) = self
            .open
            .get(&timeline_id)
            .and_then(|slices| Some(&slices[of(slices)?]))
        else {
            return;
        };
        let waits = |slice: &&Slice| {
            slice.start == queue.start && Some(&slice.parsed.name) == queue.parsed.queued.as_ref()
        };
        let step = self
            .open
            .values()
            .flatten()
            .find(waits)
            .and_then(|slice| slice.step);
        let slices = self.open.get_mut(&timeline_id);
        if let Some(queue) = slices.and_then(|slices| of(slices).map(|at| &mut slices[at])) {
            queue.step = step;
        }
    }

    /// Notes a slice of a step. Records the times of older steps.
    fn observe_step(&mut self, step: i64, id: [u8; 8], wall: &WallClock, recorder: &mut Recorder<'_>) {
        if self.newest.is_none_or(|(newest, _)| newest < step) {
            self.newest = Some((step, id));
        }
        let trained = self
            .times
            .iter()
            .rev()
            .find(|(_, times)| !times.train_steps.is_empty());
        // Devices end later than threads, so the previous step may still be incomplete.
        if let Some((&trained, _)) = trained {
            self.record_steps_to(trained.saturating_sub(2), wall, recorder);
        }
    }

    fn is_device(&self, timeline_id: u64) -> bool {
        self.tracks.timeline(timeline_id).is_device
    }

    fn span<'a>(
        &'a self,
        timeline_id: u64,
        slice: &'a Slice,
        end: u64,
        parent: Option<[u8; 8]>,
        wall: &WallClock,
        recorder: &Recorder<'_>,
    ) -> SliceSpan<'a> {
        let link = slice.link.filter(|_| slice.step.is_none());
        SliceSpan {
            kind: names::span_kind(&slice.parsed, false),
            parsed: &slice.parsed,
            mini_batch: slice.parsed.mini_batch,
            micro_batch: slice.parsed.micro_batch,
            timeline: self.tracks.timeline(timeline_id),
            step: slice.step,
            id: slice.id,
            parent,
            start_unix_nanos: wall.unix(slice.start),
            end_unix_nanos: wall.unix(end),
            is_unfinished: false,
            link: link.map(|(step, span_id)| SpanLink {
                trace_id: ids::step_trace(recorder.run(), step),
                span_id,
            }),
        }
    }

    /// Adds a slice to the times of its step. Training steps and weight synchronisation come from the host thread, all others
    /// from devices.
    fn count(&mut self, timeline_id: u64, slice: &Slice, end: u64) {
        let timeline = self.tracks.timeline(timeline_id);
        let (is_device, is_queue) = (timeline.is_device, slice.parsed.queued.is_some());
        let Some(step) = slice
            .step
            .filter(|step| self.recorded_step < Some(*step) && !is_queue)
        else {
            return;
        };
        let times = self.times.entry(step).or_default();
        let interval = Interval {
            start: slice.start,
            end,
        };
        match (slice.parsed.name.as_str(), is_device) {
            ("rollout", true) => push_sequential(&mut times.rollouts, interval),
            ("reference_inference", true) => push_sequential(&mut times.references, interval),
            ("old_actor_inference", true) => push_sequential(&mut times.old_actors, interval),
            ("peft_train", false) if slice.parsed.role.as_deref() != Some("critic") => {
                times.train_steps.push(interval);
            }
            ("weight_sync", false) => times.weight_sync = Some(interval),
            _ => {}
        }
    }

    /// Records the times of every step up to `last` that has training.
    fn record_steps_to(&mut self, last: i64, wall: &WallClock, recorder: &mut Recorder<'_>) {
        while let Some(entry) = self.times.first_entry()
            && *entry.key() <= last
        {
            let (step, times) = entry.remove_entry();
            let Some(trained) = times.train_steps.last() else {
                continue;
            };
            let end = times.weight_sync.map_or(trained.end, |sync| sync.end);
            if self.restored_step >= Some(step) {
                recorder.replay(|recorder| times.record(wall.unix(end), recorder));
            } else {
                times.record(wall.unix(end), recorder);
            }
            self.recorded_step = Some(step);
        }
    }
}

/// Returns the parent of a slice that ended at `end`: the enclosing slice of the same step. Slices of a device have no parent,
/// because devices run them concurrently.
fn parent_of(slice: &Slice, end: u64, slices: &[Slice], is_device: bool) -> Option<[u8; 8]> {
    let contains = |other: &&Slice| {
        other.number < slice.number
            && other.start <= slice.start
            && other.end.is_none_or(|other| other >= end)
            && other.step == slice.step
            && other.parsed.name != slice.parsed.name
            && (other.parsed.group_id.is_none() || other.parsed.group_id == slice.parsed.group_id)
    };
    if is_device {
        return None;
    }
    slices.iter().rfind(contains).map(|parent| parent.id)
}

/// Adds work of a device that runs one slice at a time, as in version 1.
fn push_sequential(intervals: &mut Vec<Interval>, work: Interval) {
    let busy_to = intervals.last().map_or(0, |last| last.end);
    intervals.push(Interval {
        start: work.start.max(busy_to).min(work.end),
        end: work.end,
    });
}
