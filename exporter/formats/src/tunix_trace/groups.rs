//! Parses version 1 (`tunix/perf/perfetto.py`), which appends one fragment at the end of each step. The begin and end of a
//! group precede its children. Groups are opened on all timelines at once, so most groups occur several times.
//!
//! Every slice is recorded as soon as it is read, so a growing file needs no special treatment.

use std::collections::BTreeMap;

use super::{
    names::{self, ACTOR_LOOP, CRITIC_LOOP, MICRO_BATCHES, MINI_BATCH, STEP, UnknownNames},
    slice_name::SliceName,
    slice_span::{SliceSpan, Timeline},
    times::{Interval, StepTimes},
    wall::WallClock,
};
use pulsetrain_record::{Recorder, SkipReason, ids};

/// The rule that leaves out copies of a group on other timelines.
const COPY: SkipReason = SkipReason::Ignored("group_of_another_timeline");

/// Converts slices of version 1.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The number of the next step.
    next_step: i64,
    step: Fragment,
    tracks: BTreeMap<u64, TrackState>,
    /// The latest time so far.
    latest: u64,
    unknown: UnknownNames,
}

/// The state of the current step.
#[derive(Debug, Default)]
struct Fragment {
    /// The number of the step, once its group has begun.
    number: Option<i64>,
    /// The groups of the step, in order of time.
    groups: Vec<Group>,
    times: StepTimes,
    /// The number of actor loops on the main thread.
    loops: usize,
    is_recorded: bool,
}

/// A group or unknown slice that may contain others.
#[derive(Clone, Debug)]
struct Group {
    name: String,
    start: u64,
    /// `None` while the group is open.
    end: Option<u64>,
    id: [u8; 8],
    mini_batch: Option<i64>,
    micro_batch: Option<i64>,
    /// The number of numbered child groups so far.
    children: i64,
}

/// The state of a track.
#[derive(Debug, Default)]
struct TrackState {
    timeline: Timeline,
    kind: TrackKind,
    /// The open slices, innermost last.
    open: Vec<Slice>,
    /// The groups that enclose the last slice, as indexes into the groups of the step.
    enclosing: Vec<usize>,
    /// The name and begin of the last slice, and the number of equal ones before it.
    last: (String, u64, u64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TrackKind {
    /// The main thread, which runs the step.
    Main,
    /// Another thread.
    #[default]
    Thread,
    Rollout,
    Reference,
    Actor,
}

/// An open slice.
#[derive(Debug)]
struct Slice {
    parsed: SliceName,
    start: u64,
    id: [u8; 8],
    parent: Option<usize>,
    /// The index of the slice's own group, if the slice is one.
    group: Option<usize>,
    is_copy: bool,
}

impl Groups {
    /// Adds a track. The first track of a fragment ends the fragment before it.
    pub(super) fn track(&mut self, uuid: u64, name: &str, wall: &WallClock, recorder: &mut Recorder<'_>) {
        if name == super::ROOT_OF_GROUPS {
            self.end(wall, recorder);
            return;
        }
        let kind = match name {
            "Main" | "Main -- thread 0" => TrackKind::Main,
            "Rollout" => TrackKind::Rollout,
            "Reference" => TrackKind::Reference,
            "Actor" => TrackKind::Actor,
            _ => TrackKind::Thread,
        };
        let timeline = Timeline {
            name: name.to_owned(),
            is_device: !matches!(kind, TrackKind::Main | TrackKind::Thread),
            ..Timeline::default()
        };
        let track = self.tracks.entry(uuid).or_default();
        (track.timeline, track.kind) = (timeline, kind);
    }

    /// Opens a slice.
    pub(super) fn begin(&mut self, uuid: u64, time: u64, name: &str, recorder: &mut Recorder<'_>) {
        self.latest = self.latest.max(time);
        let parsed = SliceName::parse(name);
        self.unknown.report_once(&parsed, recorder);
        let track = self.tracks.entry(uuid).or_default();
        let step = &mut self.step;
        track
            .enclosing
            .retain(|&group| track.kind == TrackKind::Actor || step.groups[group].contains(time));
        let is_group = names::is_group(&parsed.name);
        if track.kind == TrackKind::Actor && is_group {
            track.enclosing.clear();
        }
        if parsed.name == STEP && step.number.is_none() {
            step.number = Some(self.next_step);
            self.next_step += 1;
        }
        let known = is_group.then(|| step.group_index(&parsed.name, time)).flatten();
        let ordinal = track.ordinal(name, time);
        let id = match step
            .number
            .filter(|_| parsed.name == STEP && step.groups.is_empty())
        {
            Some(number) => ids::step_span(recorder.run(), number),
            None => ids::work_span(recorder.run(), &track.timeline.name, name, time, ordinal),
        };
        let parent = match track.kind {
            TrackKind::Rollout | TrackKind::Reference => step.innermost(time),
            _ => {
                let enclosing = track.enclosing.iter().rev();
                let contains = |group: &&usize| names::may_contain(&step.groups[**group].name, &parsed.name);
                enclosing
                    .copied()
                    .find(|group| contains(&group))
                    .or_else(|| step.innermost(time))
            }
        };
        let group = is_group.then(|| known.unwrap_or_else(|| step.open(&parsed.name, time, id, parent)));
        track.enclosing.extend(group);
        track.open.push(Slice {
            parent: parent.filter(|parent| Some(*parent) != group),
            id,
            start: time,
            group,
            is_copy: known.is_some(),
            parsed,
        });
    }

    /// Ends the innermost slice of a track. Returns `false` if no slice was open.
    pub(super) fn close(
        &mut self,
        uuid: u64,
        time: u64,
        wall: &WallClock,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        self.latest = self.latest.max(time);
        let Some(track) = self.tracks.get_mut(&uuid) else {
            return false;
        };
        let Some(slice) = track.open.pop() else {
            return false;
        };
        let (timeline, kind) = (&track.timeline, track.kind);
        self.step
            .record_slice(timeline, &slice, time, false, wall, recorder);
        self.step.count(kind, &slice, time);
        if self.step.is_complete(kind) {
            self.step.record_times(wall, recorder);
        }
        true
    }

    /// Ends the step. Open slices end at the latest time of the trace.
    pub(super) fn end(&mut self, wall: &WallClock, recorder: &mut Recorder<'_>) {
        for track in self.tracks.values_mut() {
            for slice in track.open.drain(..).rev() {
                self.step
                    .record_slice(&track.timeline, &slice, self.latest, true, wall, recorder);
            }
        }
        self.step.record_times(wall, recorder);
        self.step = Fragment::default();
        self.tracks.clear();
    }
}

impl TrackState {
    /// Returns the number of earlier slices with this name and begin on the track.
    fn ordinal(&mut self, name: &str, time: u64) -> u64 {
        let (last, begun, ordinal) = &mut self.last;
        if *begun == time && last == name {
            *ordinal += 1;
        } else {
            last.clear();
            last.push_str(name);
            (*begun, *ordinal) = (time, 0);
        }
        self.last.2
    }
}

impl Group {
    fn contains(&self, time: u64) -> bool {
        self.start <= time && self.end.is_none_or(|end| time < end)
    }
}

impl Fragment {
    /// Returns the index of the copy of a group on another timeline, which began at the same nanosecond.
    fn group_index(&self, name: &str, time: u64) -> Option<usize> {
        self.groups
            .iter()
            .rposition(|group| group.start == time && group.name == name)
    }

    /// Returns the innermost of the step's own groups at a time, or else the last that had begun.
    fn innermost(&self, time: u64) -> Option<usize> {
        let is_of_step = |group: &Group| matches!(group.name.as_str(), STEP | MINI_BATCH | MICRO_BATCHES);
        let find = |is: &dyn Fn(&Group) -> bool| {
            let found = |group: &Group| is_of_step(group) && is(group);
            self.groups.iter().rposition(found)
        };
        find(&|group| group.contains(time)).or_else(|| find(&|group| group.start <= time))
    }

    fn open(&mut self, name: &str, start: u64, id: [u8; 8], parent: Option<usize>) -> usize {
        let (mut mini_batch, mut micro_batch) = (None, None);
        if let Some(parent) = parent.map(|parent| &mut self.groups[parent]) {
            (mini_batch, micro_batch) = (parent.mini_batch, parent.micro_batch);
            let number = Some(parent.children);
            match name {
                MINI_BATCH => mini_batch = number,
                ACTOR_LOOP => micro_batch = number,
                _ => {}
            }
            parent.children += i64::from(matches!(name, MINI_BATCH | ACTOR_LOOP));
        }
        self.groups.push(Group {
            name: name.to_owned(),
            start,
            end: None,
            id,
            mini_batch,
            micro_batch,
            children: 0,
        });
        self.groups.len() - 1
    }

    /// Records a slice that has ended, unless it is a copy of a group.
    fn record_slice(
        &mut self,
        timeline: &Timeline,
        slice: &Slice,
        end: u64,
        is_unfinished: bool,
        wall: &WallClock,
        recorder: &mut Recorder<'_>,
    ) {
        if let Some(group) = slice.group {
            self.groups[group].end.get_or_insert(end);
        }
        if slice.is_copy {
            return recorder.skip_value(COPY);
        }
        let parent = slice.parent.map(|parent| &self.groups[parent]);
        let own = slice.group.map(|group| &self.groups[group]).or(parent);
        let parsed = &slice.parsed;
        let is_of_critic = parent.is_some_and(|parent| parent.name == CRITIC_LOOP);
        let span = SliceSpan {
            kind: names::span_kind(parsed, is_of_critic),
            parsed,
            mini_batch: parsed.mini_batch.or(own.and_then(|group| group.mini_batch)),
            micro_batch: parsed.micro_batch.or(own.and_then(|group| group.micro_batch)),
            timeline,
            step: parsed.step.or(self.number),
            id: slice.id,
            parent: parent.map(|parent| parent.id),
            start_unix_nanos: wall.unix(slice.start),
            end_unix_nanos: wall.unix(end),
            is_unfinished,
            link: None,
        };
        span.record(recorder);
    }

    /// Adds a slice to the times of the step, from the tracks that upstream uses.
    fn count(&mut self, kind: TrackKind, slice: &Slice, end: u64) {
        let interval = Interval {
            start: slice.start,
            end,
        };
        let parent = slice.parent.map(|parent| self.groups[parent].name.as_str());
        let times = &mut self.times;
        match (kind, slice.parsed.name.as_str()) {
            (TrackKind::Main, STEP) => times.step = Some(interval),
            (TrackKind::Main, "weight_sync") if parent == Some(STEP) => times.weight_sync = Some(interval),
            (TrackKind::Main, "peft_train_step") if parent == Some(ACTOR_LOOP) => {
                times.train_steps.push(interval);
            }
            (TrackKind::Main, ACTOR_LOOP) => self.loops += 1,
            (TrackKind::Main | TrackKind::Thread, "old_actor_inference") => times.old_actors.push(interval),
            (TrackKind::Rollout, "rollout") => times.rollouts.push(interval),
            (TrackKind::Reference, "refer_inference") => times.references.push(interval),
            (TrackKind::Actor, ACTOR_LOOP) => times.loops.push(interval),
            _ => {}
        }
    }

    /// Returns whether the step is complete. The actor's loops are the last that is written of a step.
    fn is_complete(&self, kind: TrackKind) -> bool {
        kind == TrackKind::Actor && self.loops > 0 && self.times.loops.len() == self.loops
    }

    /// Records the times of the step, once.
    fn record_times(&mut self, wall: &WallClock, recorder: &mut Recorder<'_>) {
        if let Some(step) = self.times.step
            && !std::mem::replace(&mut self.is_recorded, true)
        {
            self.times.record(wall.unix(step.end), recorder);
        }
    }
}
