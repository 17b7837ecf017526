//! The output of a run's health: its series and events, with their resources.
//!
//! Signals of the run have the run's resource. Signals of a rank have the resource of its newest attempt, and
//! signals of a GPU the resource and the `gpu.id` of its points.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use pulsetrain_otlp::write::{Attribute, AttributeValue, Severity};
use pulsetrain_record::series::REPEAT_AFTER;
use pulsetrain_semconv::{attribute, event, metric};

use super::{
    UnixNanos,
    align::{AlignedStep, MAX_RANKS},
    straggler::Comparison,
    timeline::{Timeline, Use},
    verdict::{Certainty, Change, Subject, VerdictKind},
};
use crate::{run_resource::run_resource, signals::Signals};

/// The interval at which unchanged values are sent again, in seconds.
const REPEAT_SECS: f64 = REPEAT_AFTER.as_secs_f64();
/// The minimum interval between two points of a counter, because Prometheus stores milliseconds.
const MIN_POINT_INTERVAL: Duration = Duration::from_millis(1);

/// Writes the signals of one run.
#[derive(Debug)]
pub(crate) struct Reporter {
    run: Arc<str>,
    /// The resource of the run, made from that of the first rank.
    resource: Option<Arc<[u8]>>,
    ranks: BTreeMap<i64, Arc<[u8]>>,
    gpus: BTreeMap<Arc<str>, Arc<[u8]>>,
    ranks_sent: Option<((usize, usize), UnixNanos)>,
    /// The ranks whose counter of one-off slow steps has started.
    anomalies_sent: BTreeSet<i64>,
    wall_sent: BTreeMap<Use, f64>,
    /// The time when all uses of wall time were sent.
    wall_repeated: Option<UnixNanos>,
    open: BTreeMap<(VerdictKind, Subject), OpenVerdict>,
    verdicts_repeated: UnixNanos,
    /// The time when all kinds of the counter of opened verdicts were sent, and the time of its newest point.
    opened_sent: Option<(UnixNanos, UnixNanos)>,
    /// Whether the series have ended, until a rank reports again.
    has_ended: bool,
}

/// The series of an open verdict. Its end has the resource and the rank of its start.
#[derive(Debug)]
struct OpenVerdict {
    resource: Arc<[u8]>,
    /// The rank of a GPU.
    rank: Option<i64>,
}

impl Reporter {
    /// Creates a reporter of a run.
    pub(crate) fn new(run: Arc<str>) -> Self {
        Self {
            run,
            resource: None,
            ranks: BTreeMap::new(),
            gpus: BTreeMap::new(),
            ranks_sent: None,
            anomalies_sent: BTreeSet::new(),
            wall_sent: BTreeMap::new(),
            wall_repeated: None,
            open: BTreeMap::new(),
            verdicts_repeated: UnixNanos::default(),
            opened_sent: None,
            has_ended: false,
        }
    }

    /// Records the resource of a rank. Returns `false` for a rank beyond [`MAX_RANKS`], which is ignored.
    /// Signals of the run have the source of its lowest rank.
    pub(crate) fn observe_rank(&mut self, rank: i64, resource: &Arc<[u8]>, out: &mut Signals) -> bool {
        if self.ranks.len() >= MAX_RANKS && !self.ranks.contains_key(&rank) {
            return false;
        }
        if std::mem::take(&mut self.has_ended) {
            // The series of open verdicts were dropped.
            self.verdicts_repeated = UnixNanos::default();
        }
        if self.resource.is_none() {
            self.resource = Some(run_resource(resource, &self.run).into());
        }
        match self.ranks.get_mut(&rank) {
            Some(known) if Arc::ptr_eq(known, resource) => {}
            Some(known) => *known = Arc::clone(resource),
            None => {
                self.ranks.insert(rank, Arc::clone(resource));
            }
        }
        let is_lowest = self.ranks.keys().next() == Some(&rank);
        if let Some(of_run) = self.resource.as_ref().filter(|_| is_lowest) {
            out.bind(of_run);
        }
        true
    }

    /// Records the resource of a GPU's points, with their source.
    pub(crate) fn observe_gpu(&mut self, id: &Arc<str>, resource: &[u8], out: &mut Signals) {
        out.bind(resource);
        if self.gpus.get(id).is_none_or(|known| &**known != resource) {
            self.gpus.insert(Arc::clone(id), resource.into());
        }
    }

    /// Drops the resources of GPUs that no longer belong to the run.
    pub(crate) fn forget_gpus(&mut self, ids: &[Arc<str>]) {
        for id in ids {
            self.gpus.remove(id);
        }
    }

    /// Returns whether a rank has reported.
    pub(crate) fn knows(&self, rank: i64) -> bool {
        self.ranks.contains_key(&rank)
    }

    /// Returns the number of ranks that have reported.
    pub(crate) fn rank_count(&self) -> usize {
        self.ranks.len()
    }

    /// Ends the series of the run and of its ranks.
    pub(crate) fn end(&mut self, time: UnixNanos, out: &mut Signals) {
        for resource in self.resource.iter().chain(self.ranks.values()) {
            out.resource(resource).end(time);
        }
        (self.ranks_sent, self.wall_repeated) = (None, None);
        self.has_ended = true;
    }

    /// Sets the start time of the run's counters, unless it is set.
    pub(crate) fn starts_at(&self, time: UnixNanos, out: &mut Signals) {
        if let Some(resource) = &self.resource {
            out.resource(resource).starts_at(time);
        }
    }

    /// Sends the comparison of the ranks of a step.
    pub(crate) fn scores(&mut self, time: UnixNanos, compared: &Comparison, out: &mut Signals) {
        for rank in &compared.ranks {
            let Some(resource) = self.ranks.get(&rank.rank) else {
                continue;
            };
            let signals = out.resource(resource);
            signals.record(&metric::TRAIN_STRAGGLER_SCORE, time, rank.score, &[]);
            let attributes = [(&attribute::TRAIN_ANOMALY_TYPE, AttributeValue::Text("straggler"))];
            let is_first = self.anomalies_sent.insert(rank.rank);
            if rank.one_off || is_first {
                let growth = f64::from(u8::from(rank.one_off));
                signals.record(&metric::TRAIN_ANOMALIES, time, growth, &attributes);
            }
        }
        let Some(resource) = &self.resource else { return };
        let signals = out.resource(resource);
        for (statistic, secs) in [
            ("min", compared.min),
            ("median", compared.median),
            ("max", compared.max),
        ] {
            let attributes = [(&attribute::TRAIN_RANK_STATISTIC, AttributeValue::Text(statistic))];
            signals.record(&metric::TRAIN_RANK_STEP_TIME, time, secs, &attributes);
        }
    }

    /// Sends the share of the step in which each rank waited for data: `perf.data` / duration of the step.
    pub(crate) fn data_waits(&self, step: &AlignedStep, out: &mut Signals) {
        for rank in &step.ranks {
            let share = rank.data.and_then(|data| rank.share(data));
            if let (Some(share), Some(resource)) = (share, self.ranks.get(&rank.rank)) {
                out.resource(resource)
                    .record(&metric::PERF_DATA_WAIT_RATIO, rank.end, share, &[]);
            }
        }
    }

    /// Sends the number of ranks that reported a step and of those that are missing, at each change and once
    /// a minute.
    pub(crate) fn rank_counts(&mut self, step: &AlignedStep, out: &mut Signals) {
        let (now, time) = ((step.ranks.len(), step.missing), step.end());
        let is_known = self
            .ranks_sent
            .is_some_and(|(sent, at)| sent == now && time.secs_since(at) < REPEAT_SECS);
        let Some(resource) = self.resource.as_ref().filter(|_| !is_known) else {
            return;
        };
        self.ranks_sent = Some((now, time));
        let signals = out.resource(resource);
        for (state, ranks) in [("reporting", now.0), ("missing", now.1)] {
            let attributes = [(&attribute::TRAIN_RANK_STATE, AttributeValue::Text(state))];
            signals.record(&metric::TRAIN_RANKS, time, ranks as f64, &attributes);
        }
    }

    /// Sends the wall time that was settled since the last call, and the goodput.
    ///
    /// Every use starts with 0 at the start of the run, so that `increase()` detects its first growth, and is
    /// sent again each minute.
    pub(crate) fn wall_time(&mut self, timeline: &Timeline, out: &mut Signals) {
        let (Some(resource), Some(started)) = (&self.resource, timeline.started()) else {
            return;
        };
        if self.has_ended {
            return;
        }
        let time = timeline.settled();
        let mut has_grown = false;
        let is_due = self
            .wall_repeated
            .is_none_or(|at| time.secs_since(at) >= REPEAT_SECS);
        let at = if self.wall_sent.is_empty() { started } else { time };
        for used_for in Use::ALL.into_iter().filter(|_| is_due) {
            let signals = out.resource(resource);
            signals.record(&metric::TRAIN_WALL_TIME, at, 0.0, attributes_of(used_for));
        }
        if is_due {
            self.wall_repeated = Some(at);
        }
        for (used_for, secs) in timeline.totals() {
            let sent = self.wall_sent.entry(used_for).or_default();
            if secs > *sent {
                out.resource(resource).record(
                    &metric::TRAIN_WALL_TIME,
                    time,
                    secs - *sent,
                    attributes_of(used_for),
                );
                *sent = secs;
                has_grown = true;
            }
        }
        let is_suppressed = |resource: &Arc<[u8]>| out.is_suppressed(resource, &metric::TRAIN_GOODPUT);
        if has_grown
            && let Some(goodput) = timeline.goodput()
            && !self.ranks.values().next().is_some_and(is_suppressed)
        {
            out.resource(resource)
                .record(&metric::TRAIN_GOODPUT, time, goodput, &[]);
        }
    }

    /// Sends each open verdict again, once a minute.
    pub(crate) fn repeat_verdicts(&mut self, now: UnixNanos, out: &mut Signals) {
        if now.secs_since(self.verdicts_repeated) < REPEAT_SECS {
            return;
        }
        // The series of an ended run stay ended. Those of a GPU have their own end.
        let (has_ended, mut open) = (self.has_ended, std::mem::take(&mut self.open));
        for ((kind, subject), verdict) in &mut open {
            if has_ended && !matches!(subject, Subject::Gpu(_)) {
                continue;
            }
            if let Some(resource) = self.resource_of(subject).filter(|now| **now != verdict.resource) {
                // After a restart of the rank, its series has another resource.
                let resource = Arc::clone(resource);
                self.send_state(*kind, subject, verdict, (now, false), out);
                verdict.resource = resource;
            }
            self.send_state(*kind, subject, verdict, (now, true), out);
        }
        self.open = open;
        self.verdicts_repeated = now;
    }

    /// Sends the number of opened verdicts of each kind, once a minute. Each kind starts with 0 at the start
    /// of the run, so that `increase()` detects its first verdict.
    pub(crate) fn opened_verdicts(&mut self, started: UnixNanos, now: UnixNanos, out: &mut Signals) {
        let at = match self.opened_sent {
            None => started,
            Some((all, newest)) if now.secs_since(all) >= REPEAT_SECS && now > newest => now,
            Some(_) => return,
        };
        let Some(resource) = self.resource.as_ref().filter(|_| !self.has_ended) else {
            return;
        };
        self.opened_sent = Some((at, at));
        for kind in VerdictKind::ALL {
            let attributes = [(
                &attribute::TRAIN_VERDICT_KIND,
                AttributeValue::Text(kind.as_str()),
            )];
            out.resource(resource)
                .record(&metric::TRAIN_OPENED_VERDICTS, at, 0.0, &attributes);
        }
    }

    /// Counts an opened verdict. A verdict may be shorter than a scrape interval, in which case
    /// `train.verdicts` misses it and this counter does not.
    fn count_opened(&mut self, kind: VerdictKind, time: UnixNanos, out: &mut Signals) {
        self.opened_verdicts(time, time, out);
        let resource = self.resource.as_ref().filter(|_| !self.has_ended);
        let (Some(resource), Some((all, newest))) = (resource, self.opened_sent) else {
            return;
        };
        let time = time.max(newest.saturating_add(MIN_POINT_INTERVAL));
        self.opened_sent = Some((all, time));
        let attributes = [(
            &attribute::TRAIN_VERDICT_KIND,
            AttributeValue::Text(kind.as_str()),
        )];
        out.resource(resource)
            .record(&metric::TRAIN_OPENED_VERDICTS, time, 1.0, &attributes);
    }

    /// Sends the change of a verdict: an event, and whether it is open.
    pub(crate) fn verdict(&mut self, change: &Change, rank: Option<i64>, out: &mut Signals) {
        let key = (change.kind, change.subject.clone());
        let known = self.open.remove(&key);
        if change.is_open && known.is_none() {
            self.count_opened(change.kind, change.time, out);
        }
        let resource = self.resource_of(&change.subject).cloned();
        let fresh = || resource.map(|resource| OpenVerdict { resource, rank });
        if let Some(verdict) = known.or_else(fresh) {
            let state = (change.time, change.is_open);
            self.send_state(change.kind, &change.subject, &verdict, state, out);
            if change.is_open {
                self.open.insert(key, verdict);
            }
        }
        let Some(resource) = self.resource_of(&change.subject) else {
            return;
        };
        let subject = change.subject.to_string();
        let (state, severity) = match (change.is_open, change.certainty) {
            (true, Certainty::Fault) => ("open", Severity::Warn),
            (true, Certainty::MayBeIntended) => ("open", Severity::Info),
            (false, _) => ("resolved", Severity::Info),
        };
        let mut attributes = vec![
            (
                &attribute::TRAIN_VERDICT_KIND,
                AttributeValue::Text(change.kind.as_str()),
            ),
            (&attribute::TRAIN_VERDICT_STATE, AttributeValue::Text(state)),
        ];
        if change.subject != Subject::Run {
            attributes.push((&attribute::TRAIN_VERDICT_SUBJECT, AttributeValue::Text(&subject)));
        }
        attributes.extend(
            change
                .step
                .map(|step| (&attribute::TRAIN_STEP, AttributeValue::Int(step))),
        );
        if let Subject::Rank(rank) = change.subject {
            attributes.push((&attribute::TRAIN_RANK, AttributeValue::Int(rank)));
        }
        attributes.extend(self.of_gpu(&change.subject, rank));
        out.resource(resource).event(
            &event::TRAIN_VERDICT,
            change.time,
            severity,
            &change.reason,
            &attributes,
        );
    }

    /// Sends whether a verdict is open at a time.
    fn send_state(
        &self,
        kind: VerdictKind,
        subject: &Subject,
        verdict: &OpenVerdict,
        (time, is_open): (UnixNanos, bool),
        out: &mut Signals,
    ) {
        let mut series = vec![(
            &attribute::TRAIN_VERDICT_KIND,
            AttributeValue::Text(kind.as_str()),
        )];
        series.extend(self.of_gpu(subject, verdict.rank));
        let open = f64::from(u8::from(is_open));
        out.resource(&verdict.resource)
            .record(&metric::TRAIN_VERDICTS, time, open, &series);
    }

    /// Returns the attributes that identify a GPU and its rank in its points.
    fn of_gpu<'a>(&'a self, subject: &'a Subject, rank: Option<i64>) -> Vec<Attribute<'a>> {
        let Subject::Gpu(id) = subject else {
            return Vec::new();
        };
        let mut attributes: Vec<Attribute<'a>> = vec![
            (&attribute::GPU_ID, AttributeValue::Text(id)),
            (&attribute::TRAIN_RUN_ID, AttributeValue::Text(&self.run)),
        ];
        attributes.extend(rank.map(|rank| (&attribute::TRAIN_RANK, AttributeValue::Int(rank))));
        attributes
    }

    fn resource_of(&self, subject: &Subject) -> Option<&Arc<[u8]>> {
        match subject {
            Subject::Run => self.resource.as_ref(),
            Subject::Rank(rank) => self.ranks.get(rank).or(self.resource.as_ref()),
            Subject::Gpu(id) => self.gpus.get(id),
        }
    }
}

/// Returns the attributes of `train.wall_time`: NeMo-RL's buckets, and the causes of Google's
/// ml-goodput-measurement with three of our own.
fn attributes_of(used_for: Use) -> &'static [Attribute<'static>] {
    macro_rules! use_of {
        ($bucket:literal) => {
            &[(
                &attribute::TRAIN_GOODPUT_BUCKET,
                AttributeValue::Text($bucket),
            )]
        };
        ($bucket:literal, $cause:literal) => {
            &[
                (
                    &attribute::TRAIN_GOODPUT_BUCKET,
                    AttributeValue::Text($bucket),
                ),
                (&attribute::TRAIN_BADPUT_CAUSE, AttributeValue::Text($cause)),
            ]
        };
    }
    match used_for {
        Use::Productive => use_of!("productive"),
        Use::DeviceInitialization => use_of!("overhead", "tpu_initialization"),
        Use::TrainingPreparation => use_of!("overhead", "training_prep"),
        Use::ProgramStartup => use_of!("overhead", "program_startup"),
        Use::CheckpointSave => use_of!("overhead", "unproductive_checkpoint_save_time"),
        Use::CheckpointRestore => use_of!("overhead", "unproductive_checkpoint_restore_time"),
        Use::Evaluation => use_of!("overhead", "evaluation"),
        Use::Other => use_of!("overhead", "other"),
        Use::DataWait => use_of!("idle", "data_loading_sync"),
        Use::DispatchWait => use_of!("idle", "dispatch_wait"),
        Use::Stall => use_of!("idle", "stall"),
        Use::Repeated => use_of!("wasted", "wasted_progress_from_disruption"),
        Use::Recovery => use_of!("wasted", "infrastructure_recovery_from_disruption"),
    }
}
