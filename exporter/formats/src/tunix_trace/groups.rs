//! Version 1 (`tunix/perf/perfetto.py`): a fragment a step, appended when the step is over. A group stands before what it
//! holds, and its end before them too; groups are opened on all timelines at once, so most of them are there several times.
//!
//! Every slice goes out as soon as it is read, so a file that is still being written is read like any other.

use std::collections::BTreeMap;

use super::{
    names::{self, ACTOR_LOOP, CRITIC_LOOP, MICRO_BATCHES, MINI_BATCH, STEP, UnknownNames},
    slice_name::SliceName,
    times::{Interval, StepTimes},
    wall::WallClock,
    work::{Timeline, Work},
};
use pulsetrain_record::{Recorder, SkipReason, ids};

/// The rule under which a group that was said already is left out.
const COPY: SkipReason = SkipReason::Ignored("group_of_another_timeline");

/// Reads slices of version 1.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// The number of the step that is next.
    next_step: i64,
    step: Fragment,
    rows: BTreeMap<u64, Row>,
    /// The latest time that was read.
    latest: u64,
    unknown: UnknownNames,
}

/// What is known of the step that is read.
#[derive(Debug, Default)]
struct Fragment {
    /// The number of the step, from its group on.
    number: Option<i64>,
    /// Its groups, in order of time.
    groups: Vec<Group>,
    times: StepTimes,
    /// The loops of the actor on the thread that runs the step.
    loops: usize,
    is_told: bool,
}

/// A group, or anything else that may hold others.
#[derive(Clone, Debug)]
struct Group {
    name: String,
    start: u64,
    /// Not known while it is open.
    end: Option<u64>,
    id: [u8; 8],
    mini_batch: Option<i64>,
    micro_batch: Option<i64>,
    /// How many groups of a kind were begun in it.
    children: i64,
}

/// A track.
#[derive(Debug, Default)]
struct Row {
    timeline: Timeline,
    kind: RowKind,
    /// Slices without an end.
    open: Vec<Slice>,
    /// The groups around the last slice, by their places among the groups of the step.
    around: Vec<usize>,
    /// The name and the begin of the last slice, and how many before it had the same.
    last: (String, u64, u64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RowKind {
    /// The thread that runs the step.
    Main,
    /// Another thread.
    #[default]
    Thread,
    Rollout,
    Reference,
    Actor,
}

/// A slice that has begun.
#[derive(Debug)]
struct Slice {
    parsed: SliceName,
    start: u64,
    id: [u8; 8],
    parent: Option<usize>,
    /// Its own place among the groups, where it is one.
    group: Option<usize>,
    is_copy: bool,
}

impl Groups {
    /// A track is described. The first of a fragment ends the one before.
    pub(super) fn track(&mut self, uuid: u64, name: &str, wall: &WallClock, recorder: &mut Recorder<'_>) {
        if name == super::ROOT_OF_GROUPS {
            self.end(wall, recorder);
            return;
        }
        let kind = match name {
            "Main" | "Main -- thread 0" => RowKind::Main,
            "Rollout" => RowKind::Rollout,
            "Reference" => RowKind::Reference,
            "Actor" => RowKind::Actor,
            _ => RowKind::Thread,
        };
        let timeline = Timeline {
            name: name.to_owned(),
            is_device: !matches!(kind, RowKind::Main | RowKind::Thread),
            ..Timeline::default()
        };
        let row = self.rows.entry(uuid).or_default();
        (row.timeline, row.kind) = (timeline, kind);
    }

    /// A slice begins.
    pub(super) fn begin(&mut self, uuid: u64, time: u64, name: &str, recorder: &mut Recorder<'_>) {
        self.latest = self.latest.max(time);
        let parsed = SliceName::parse(name);
        self.unknown.look_at(&parsed, recorder);
        let row = self.rows.entry(uuid).or_default();
        let step = &mut self.step;
        row.around
            .retain(|&group| row.kind == RowKind::Actor || step.groups[group].holds(time));
        let is_group = names::is_group(&parsed.name);
        if row.kind == RowKind::Actor && is_group {
            row.around.clear();
        }
        if parsed.name == STEP && step.number.is_none() {
            step.number = Some(self.next_step);
            self.next_step += 1;
        }
        let known = is_group.then(|| step.place_of(&parsed.name, time)).flatten();
        let ordinal = row.ordinal(name, time);
        let id = match step
            .number
            .filter(|_| parsed.name == STEP && step.groups.is_empty())
        {
            Some(number) => ids::step_span(recorder.run(), number),
            None => ids::work_span(recorder.run(), &row.timeline.name, name, time, ordinal),
        };
        let parent = match row.kind {
            RowKind::Rollout | RowKind::Reference => step.innermost(time),
            _ => {
                let around = row.around.iter().rev();
                let holds = |group: &&usize| names::may_hold(&step.groups[**group].name, &parsed.name);
                around
                    .copied()
                    .find(|group| holds(&group))
                    .or_else(|| step.innermost(time))
            }
        };
        let group = is_group.then(|| known.unwrap_or_else(|| step.open(&parsed.name, time, id, parent)));
        row.around.extend(group);
        row.open.push(Slice {
            parent: parent.filter(|parent| Some(*parent) != group),
            id,
            start: time,
            group,
            is_copy: known.is_some(),
            parsed,
        });
    }

    /// The innermost slice of a track ends; says whether there was one.
    pub(super) fn close(
        &mut self,
        uuid: u64,
        time: u64,
        wall: &WallClock,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        self.latest = self.latest.max(time);
        let Some(row) = self.rows.get_mut(&uuid) else {
            return false;
        };
        let Some(slice) = row.open.pop() else {
            return false;
        };
        let (timeline, kind) = (&row.timeline, row.kind);
        self.step.take(timeline, &slice, time, false, wall, recorder);
        self.step.count(kind, &slice, time);
        if self.step.is_complete(kind) {
            self.step.tell(wall, recorder);
        }
        true
    }

    /// No more of this step follows: what is open ends where the trace does.
    pub(super) fn end(&mut self, wall: &WallClock, recorder: &mut Recorder<'_>) {
        for row in self.rows.values_mut() {
            for slice in row.open.drain(..).rev() {
                self.step
                    .take(&row.timeline, &slice, self.latest, true, wall, recorder);
            }
        }
        self.step.tell(wall, recorder);
        self.step = Fragment::default();
        self.rows.clear();
    }
}

impl Row {
    /// How many slices of this name began here at this time before.
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
    fn holds(&self, time: u64) -> bool {
        self.start <= time && self.end.is_none_or(|end| time < end)
    }
}

impl Fragment {
    /// The place of a group that was opened on another timeline: it began at the same nanosecond there.
    fn place_of(&self, name: &str, time: u64) -> Option<usize> {
        self.groups
            .iter()
            .rposition(|group| group.start == time && group.name == name)
    }

    /// The innermost of the step's own groups that was open at a time, else the last that had begun.
    fn innermost(&self, time: u64) -> Option<usize> {
        let is_of_step = |group: &Group| matches!(group.name.as_str(), STEP | MINI_BATCH | MICRO_BATCHES);
        let find = |is: &dyn Fn(&Group) -> bool| {
            let found = |group: &Group| is_of_step(group) && is(group);
            self.groups.iter().rposition(found)
        };
        find(&|group| group.holds(time)).or_else(|| find(&|group| group.start <= time))
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

    /// Records a slice that has ended, unless it is the copy of a group.
    fn take(
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
        let work = Work {
            meaning: names::meaning(parsed, is_of_critic),
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
        work.record(recorder);
    }

    /// Takes a slice into the times of the step, by the tracks that upstream takes them from.
    fn count(&mut self, kind: RowKind, slice: &Slice, end: u64) {
        let interval = Interval {
            start: slice.start,
            end,
        };
        let parent = slice.parent.map(|parent| self.groups[parent].name.as_str());
        let times = &mut self.times;
        match (kind, slice.parsed.name.as_str()) {
            (RowKind::Main, STEP) => times.step = Some(interval),
            (RowKind::Main, "weight_sync") if parent == Some(STEP) => times.weight_sync = Some(interval),
            (RowKind::Main, "peft_train_step") if parent == Some(ACTOR_LOOP) => {
                times.train_steps.push(interval);
            }
            (RowKind::Main, ACTOR_LOOP) => self.loops += 1,
            (RowKind::Main | RowKind::Thread, "old_actor_inference") => times.old_actors.push(interval),
            (RowKind::Rollout, "rollout") => times.rollouts.push(interval),
            (RowKind::Reference, "refer_inference") => times.references.push(interval),
            (RowKind::Actor, ACTOR_LOOP) => times.loops.push(interval),
            _ => {}
        }
    }

    /// The actor's loops are the last that is written of a step.
    fn is_complete(&self, kind: RowKind) -> bool {
        kind == RowKind::Actor && self.loops > 0 && self.times.loops.len() == self.loops
    }

    /// Records the times of the step, once.
    fn tell(&mut self, wall: &WallClock, recorder: &mut Recorder<'_>) {
        if let Some(step) = self.times.step
            && !std::mem::replace(&mut self.is_told, true)
        {
            self.times.record(wall.unix(step.end), recorder);
        }
    }
}
