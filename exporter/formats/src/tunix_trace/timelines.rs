//! Version 2 (`tunix/perf/experimental/trace_writer.py`): a track a timeline, with lanes below it where slices overlap, and
//! everything in order of time. Slices say their step; which slice is inside which is not parsed, and is worked out again.
//!
//! A slice goes out when it has ended and all that ended at the same instant is read. Tunix writes the whole file anew
//! with every step: what was said before is known by its id and not said again.

use std::collections::BTreeMap;

use pulsetrain_otlp::write::SpanLink;
use pulsetrain_perfetto::Track;
use serde_json::Value as Json;

use super::{
    names::{self, UnknownNames},
    places::Places,
    slice_name::SliceName,
    times::{Interval, StepTimes},
    wall::WallClock,
    work::Work,
};
use crate::seen_ids::SeenIds;
use pulsetrain_record::{Recorder, ids};

/// Reads slices of version 2.
#[derive(Debug, Default)]
pub(super) struct Timelines {
    places: Places,
    unknown: UnknownNames,
    /// What is open on each timeline, or ended at this instant; in order of time.
    open: BTreeMap<u64, Vec<Slice>>,
    /// The instant that is read.
    now: u64,
    /// What ended now, by its timeline and its number, and how many of them are told.
    ended: Vec<(u64, u64)>,
    ended_told: usize,
    /// The queues that began now, with their timelines: their step is that of what waits in them.
    queued: Vec<(u64, u64)>,
    begun: u64,
    /// The newest step, with its first span.
    newest: Option<(i64, [u8; 8])>,
    times: BTreeMap<i64, StepTimes>,
    /// The last step whose times were told.
    told: Option<i64>,
    /// The same of a follower before this one: sums come to what they were by it.
    told_before: Option<i64>,
    /// What was parsed.
    seen: SeenIds,
}

/// A slice that has begun.
#[derive(Debug)]
struct Slice {
    lane: u64,
    /// Its number in order of beginning.
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
    /// The file begins again: it was written anew.
    pub(super) fn restart(&mut self) {
        self.seen.begin_pass();
        *self = Self {
            seen: std::mem::take(&mut self.seen),
            told: self.told,
            told_before: self.told_before,
            unknown: std::mem::take(&mut self.unknown),
            ..Self::default()
        };
    }

    /// What was parsed, for the next follower.
    pub(super) fn snapshot(&self) -> Option<Json> {
        self.seen.to_json(self.told.max(self.told_before))
    }

    /// Takes over what a follower before this one has said; answers whether it makes sense.
    pub(super) fn restore(&mut self, told: &Json) -> bool {
        let Some((seen, step)) = SeenIds::of_json(told) else {
            return false;
        };
        (self.seen, self.told_before) = (seen, step);
        true
    }

    /// A track is described.
    pub(super) fn track(&mut self, track: &Track, wall: &WallClock, recorder: &mut Recorder<'_>) {
        // What ended before ended on what the track was then.
        self.settle(wall, recorder);
        self.places.insert(track.uuid, track.parent, &track.name);
    }

    /// A slice begins.
    pub(super) fn begin(
        &mut self,
        uuid: u64,
        time: u64,
        name: String,
        wall: &WallClock,
        recorder: &mut Recorder<'_>,
    ) {
        self.reach(time, wall, recorder);
        let (place, timeline) = self.places.of(uuid);
        let parsed = SliceName::parse(&name);
        self.unknown.look_at(&parsed, recorder);
        let open = self.open.entry(place).or_default();
        let same = |slice: &&Slice| slice.start == time && slice.name == name;
        let ordinal = open.iter().filter(same).count() as u64;
        let id = ids::work_span(recorder.run(), &timeline.name, &name, time, ordinal);
        let around = open
            .iter()
            .rfind(|slice| !timeline.is_device && slice.end.is_none());
        let step = parsed.step.or_else(|| around?.step);
        if parsed.queued.is_some() && step.is_none() {
            self.queued.push((place, self.begun));
        }
        open.push(Slice {
            lane: uuid,
            number: self.begun,
            name,
            step,
            id,
            start: time,
            end: None,
            link: self.newest,
            parsed,
        });
        self.begun += 1;
        if let Some(step) = step {
            self.enter(step, id, wall, recorder);
        }
    }

    /// The innermost slice of a lane ends; says whether there was one.
    pub(super) fn close(
        &mut self,
        uuid: u64,
        time: u64,
        wall: &WallClock,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        self.reach(time, wall, recorder);
        let place = self.places.of(uuid).0;
        let open = self.open.entry(place).or_default();
        let innermost = open
            .iter_mut()
            .rfind(|slice| slice.lane == uuid && slice.end.is_none());
        let Some(slice) = innermost else {
            return false;
        };
        slice.end = Some(time);
        self.ended.push((place, slice.number));
        true
    }

    /// The trace ends: what is open ends with it, and every step that was trained in is complete.
    pub(super) fn end(&mut self, wall: &WallClock, recorder: &mut Recorder<'_>) {
        self.settle(wall, recorder);
        for (place, slices) in std::mem::take(&mut self.open) {
            for slice in &slices {
                let parent = parent_of(slice, self.now, &slices, self.is_device(place));
                let work = self.work(place, slice, self.now, parent, wall, recorder);
                Work {
                    is_unfinished: true,
                    ..work
                }
                .record(recorder);
            }
        }
        self.tell_to(i64::MAX, wall, recorder);
    }

    /// No more is there for the moment: what has ended goes out. What ends at the same instant may follow, and of what began
    /// at it too little is known yet.
    pub(super) fn pause(&mut self, wall: &WallClock, recorder: &mut Recorder<'_>) {
        let is_due = |slice: &Slice, now| slice.start != now;
        self.tell_ended(is_due, wall, recorder);
    }

    /// Tells what has ended, in the order of the ends, up to the first that is not to be told yet.
    fn tell_ended(
        &mut self,
        is_due: impl Fn(&Slice, u64) -> bool,
        wall: &WallClock,
        recorder: &mut Recorder<'_>,
    ) {
        while let Some(&(place, number)) = self.ended.get(self.ended_told) {
            let slices = self.open.get_mut(&place).map(std::mem::take).unwrap_or_default();
            let found = slices.binary_search_by_key(&number, |slice| slice.number);
            let slice = found.ok().map(|at| &slices[at]);
            let is_due = slice.is_none_or(|slice| is_due(slice, self.now));
            if let Some(slice) = slice.filter(|_| is_due) {
                self.tell(place, slice, &slices, wall, recorder);
            }
            if let Some(open) = self.open.get_mut(&place) {
                *open = slices;
            }
            if !is_due {
                return;
            }
            self.ended_told += 1;
        }
    }

    fn tell(
        &mut self,
        place: u64,
        slice: &Slice,
        slices: &[Slice],
        wall: &WallClock,
        recorder: &mut Recorder<'_>,
    ) {
        let Some(end) = slice.end else { return };
        if self.seen.is_new(slice.id, end) {
            let parent = parent_of(slice, end, slices, self.is_device(place));
            self.work(place, slice, end, parent, wall, recorder)
                .record(recorder);
        }
        self.count(place, slice, end);
    }

    /// An instant is reached: all that ended at the one before goes out.
    fn reach(&mut self, time: u64, wall: &WallClock, recorder: &mut Recorder<'_>) {
        if time != self.now {
            self.settle(wall, recorder);
            self.now = time;
        }
    }

    fn settle(&mut self, wall: &WallClock, recorder: &mut Recorder<'_>) {
        for (place, number) in std::mem::take(&mut self.queued) {
            self.find_step(place, number);
        }
        self.tell_ended(|_, _| true, wall, recorder);
        self.ended_told = 0;
        for (place, _) in std::mem::take(&mut self.ended) {
            if let Some(slices) = self.open.get_mut(&place) {
                slices.retain(|slice| slice.end.is_none());
            }
        }
    }

    /// A queue is of the step of what began to wait at the same nanosecond on a thread of the host.
    fn find_step(&mut self, place: u64, number: u64) {
        let of = |slices: &[Slice]| slices.iter().position(|slice| slice.number == number);
        let Some(queue) = self
            .open
            .get(&place)
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
        let slices = self.open.get_mut(&place);
        if let Some(queue) = slices.and_then(|slices| of(slices).map(|at| &mut slices[at])) {
            queue.step = step;
        }
    }

    /// A slice of a step begins.
    fn enter(&mut self, step: i64, id: [u8; 8], wall: &WallClock, recorder: &mut Recorder<'_>) {
        if self.newest.is_none_or(|(newest, _)| newest < step) {
            self.newest = Some((step, id));
        }
        let trained = self
            .times
            .iter()
            .rev()
            .find(|(_, times)| !times.train_steps.is_empty());
        // Of the step before that something may still be on its way: devices end later than threads.
        if let Some((&trained, _)) = trained {
            self.tell_to(trained.saturating_sub(2), wall, recorder);
        }
    }

    fn is_device(&self, place: u64) -> bool {
        self.places.timeline(place).is_device
    }

    fn work<'a>(
        &'a self,
        place: u64,
        slice: &'a Slice,
        end: u64,
        parent: Option<[u8; 8]>,
        wall: &WallClock,
        recorder: &Recorder<'_>,
    ) -> Work<'a> {
        let link = slice.link.filter(|_| slice.step.is_none());
        Work {
            meaning: names::meaning(&slice.parsed, false),
            parsed: &slice.parsed,
            mini_batch: slice.parsed.mini_batch,
            micro_batch: slice.parsed.micro_batch,
            timeline: self.places.timeline(place),
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

    /// Takes a slice into the times of its step: a device's where it has any, for training steps and weights the thread's.
    fn count(&mut self, place: u64, slice: &Slice, end: u64) {
        let timeline = self.places.timeline(place);
        let (is_device, is_queue) = (timeline.is_device, slice.parsed.queued.is_some());
        let Some(step) = slice.step.filter(|step| self.told < Some(*step) && !is_queue) else {
            return;
        };
        let times = self.times.entry(step).or_default();
        let interval = Interval {
            start: slice.start,
            end,
        };
        match (slice.parsed.name.as_str(), is_device) {
            ("rollout", true) => in_turn(&mut times.rollouts, interval),
            ("reference_inference", true) => in_turn(&mut times.references, interval),
            ("old_actor_inference", true) => in_turn(&mut times.old_actors, interval),
            ("peft_train", false) if slice.parsed.role.as_deref() != Some("critic") => {
                times.train_steps.push(interval);
            }
            ("weight_sync", false) => times.weight_sync = Some(interval),
            _ => {}
        }
    }

    /// Records the times of every step up to this one that was trained in.
    fn tell_to(&mut self, last: i64, wall: &WallClock, recorder: &mut Recorder<'_>) {
        while let Some(entry) = self.times.first_entry()
            && *entry.key() <= last
        {
            let (step, times) = entry.remove_entry();
            let Some(trained) = times.train_steps.last() else {
                continue;
            };
            let end = times.weight_sync.map_or(trained.end, |sync| sync.end);
            if self.told_before >= Some(step) {
                recorder.replay(|recorder| times.record(wall.unix(end), recorder));
            } else {
                times.record(wall.unix(end), recorder);
            }
            self.told = Some(step);
        }
    }
}

/// The slice around a slice that ended at `end`: on a thread only, since devices run what they are given side by side, and of
/// the same step only.
fn parent_of(slice: &Slice, end: u64, slices: &[Slice], is_device: bool) -> Option<[u8; 8]> {
    let holds = |other: &&Slice| {
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
    slices.iter().rfind(holds).map(|parent| parent.id)
}

/// Adds work of a device that does one thing after the other, as version 1 has it.
fn in_turn(intervals: &mut Vec<Interval>, work: Interval) {
    let busy_to = intervals.last().map_or(0, |last| last.end);
    intervals.push(Interval {
        start: work.start.max(busy_to).min(work.end),
        end: work.end,
    });
}
