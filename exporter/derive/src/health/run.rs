//! The health of one run: routes its facts to alignment, timeline and detectors, and applies the precedence
//! of root causes.
//!
//! - A rank that is slow while its GPU is throttled is `gpu_throttled` and no straggler.
//! - A run that stops after a GPU was lost is `gpu_lost`. It is stalled only if it makes no progress for 30
//!   minutes.
//! - A stall with spinning GPUs is `collective_hang`, otherwise `stalled`. Each stall has one verdict.
//! - A restart ends a stall and a hang. All other verdicts stay open until steps or readings show that the
//!   fault is gone.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use pulsetrain_semconv::metric;

use super::{
    UnixNanos,
    align::{AlignConfig, AlignedStep, Alignment},
    arrivals::Arrivals,
    rank_step::RankStep,
    report::Reporter,
    restarts::Restarts,
    sample::median,
    straggler::{Comparison, RankScore, Stragglers},
    timeline::{Interval, RunStep, Timeline, Use},
    verdict::{Board, Certainty, Span, Subject, VerdictKind},
    verdicts::{
        GpuReading, GpuVerdicts, MemoryLeaks, Numbers, SilentRanks, SlowCheckpoint, StallDetector, StallKind,
        Waits,
    },
};
use crate::{
    signals::Signals,
    steps::{Lifecycle, LifecycleFacts, Phase, StepFacts},
    wall_clock::is_future,
};

/// The time for which a lost GPU explains missing progress.
const GPU_LOST_EXPLAINS: Duration = Duration::from_secs(30 * 60);
/// The interval of time checks by the detectors, in event time.
const TICK: Duration = Duration::from_secs(1);
/// A GPU reading counts as one of a working run if a step ended this recently.
const WORKING: Duration = Duration::from_secs(10);
/// The verdicts that a restart ends. All others end when steps or readings show it, because a slow rank is
/// slow in the next attempt too.
const OF_AN_ATTEMPT: [VerdictKind; 3] = [
    VerdictKind::Stalled,
    VerdictKind::CollectiveHang,
    VerdictKind::TelemetryLost,
];
/// The verdicts that end when a restarted job no longer has their rank.
const OF_A_RANK: [VerdictKind; 3] = [
    VerdictKind::Straggler,
    VerdictKind::MemoryLeak,
    VerdictKind::TelemetryLost,
];
const STALLS: [VerdictKind; 2] = [VerdictKind::Stalled, VerdictKind::CollectiveHang];

/// The health of one run.
#[derive(Debug)]
pub(crate) struct RunHealth {
    reporter: Reporter,
    /// The newest attempt, which includes restarts that the trainer does not number.
    attempt: i64,
    restarts: Restarts,
    alignment: Alignment,
    /// The minimum time that a step waits for its ranks.
    wait: Duration,
    arrivals: Arrivals,
    stragglers: Stragglers,
    timeline: Timeline,
    board: Board,
    waits: Waits,
    numbers: Numbers,
    gpus: GpuVerdicts,
    leaks: MemoryLeaks,
    silent: SilentRanks,
    /// Ranks that ended their series.
    ended: BTreeSet<i64>,
    checkpoints: SlowCheckpoint,
    progress: StallDetector,
    /// In a recording, a stall that no step has followed yet.
    unconfirmed_stall: Option<Stall>,
    /// The newest time of the run's own telemetry.
    newest: UnixNanos,
    ticked: UnixNanos,
}

/// A stall or a hang, as in its verdict.
#[derive(Debug)]
struct Stall {
    kind: VerdictKind,
    time: UnixNanos,
    reason: String,
}

impl RunHealth {
    /// Returns the health of a new run.
    pub(crate) fn new(run: &Arc<str>, config: AlignConfig) -> Self {
        Self {
            reporter: Reporter::new(Arc::clone(run)),
            attempt: i64::MIN,
            restarts: Restarts::default(),
            alignment: Alignment::new(config),
            wait: config.wait,
            arrivals: Arrivals::default(),
            stragglers: Stragglers::default(),
            timeline: Timeline::new(),
            board: Board::default(),
            waits: Waits::default(),
            numbers: Numbers::default(),
            gpus: GpuVerdicts::default(),
            leaks: MemoryLeaks::default(),
            silent: SilentRanks::new(config.wait),
            ended: BTreeSet::new(),
            checkpoints: SlowCheckpoint::default(),
            progress: StallDetector::default(),
            unconfirmed_stall: None,
            newest: UnixNanos::default(),
            ticked: UnixNanos::default(),
        }
    }

    /// Returns the newest time of the run's telemetry.
    pub(crate) fn newest(&self) -> UnixNanos {
        self.newest
    }

    /// Records a time of the run's telemetry. A time in the future is ignored.
    fn observe_time(&mut self, time: UnixNanos) {
        if time > self.newest && !is_future(time) {
            self.newest = time;
        }
    }

    /// Returns whether the passing of time may change the state: the run may stall.
    pub(crate) fn is_active(&self) -> bool {
        self.progress.stall_secs(None).is_some()
    }

    /// Returns the number of ranks that each part tracks.
    #[cfg(test)]
    pub(crate) fn rank_counts(&self) -> [usize; 7] {
        [
            self.reporter.rank_count(),
            self.restarts.len(),
            self.arrivals.len(),
            self.stragglers.len(),
            self.leaks.len(),
            self.silent.len(),
            self.ended.len(),
        ]
    }

    /// Adds a step of a rank.
    pub(crate) fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let rank = step.rank.rank;
        if !self.reporter.observe_rank(rank, &step.rank.resource, out) {
            return;
        }
        self.ended.remove(&rank);
        let attempt = self.attempt_of(step);
        if let Some(size) = step.rank.world_size {
            self.alignment.set_world_size(attempt, size);
        }
        let step_of_rank = rank_step(step);
        self.observe_time(step_of_rank.end);
        if attempt < self.attempt {
            // In a recording, ranks arrive one after the other, each with all its attempts.
            if self.is_recording() {
                self.alignment.add(attempt, step_of_rank, out.arrival());
                self.close_steps(out);
                self.report(out);
            }
            return;
        }
        if attempt > self.attempt {
            self.attempt = attempt;
            self.confirm_stall();
            self.board.resolve_all(&OF_AN_ATTEMPT, step_of_rank.end);
        }
        self.progress
            .set_planned(step.constants.planned_steps.map(|steps| steps as i64));
        self.observe_progress(attempt, &step_of_rank);
        self.leaks.on_rank_step(attempt, &step_of_rank, &mut self.board);
        self.arrivals.on_step(rank, out.arrival());
        self.silent.on_rank_step(
            attempt,
            &step_of_rank,
            (&self.arrivals, out.arrival()),
            &mut self.board,
        );
        self.alignment.add(attempt, step_of_rank, out.arrival());
        self.close_steps(out);
        self.report(out);
    }

    /// Adds an interval outside steps.
    pub(crate) fn on_lifecycle(&mut self, facts: &LifecycleFacts, out: &mut Signals) {
        if !self
            .reporter
            .observe_rank(facts.rank.rank, &facts.rank.resource, out)
        {
            return;
        }
        self.observe_time(facts.end);
        let used_for = match facts.kind {
            Lifecycle::Run => {
                self.progress.end();
                return;
            }
            Lifecycle::Init if facts.is_device_init => Use::DeviceInitialization,
            Lifecycle::Init => Use::TrainingPreparation,
            Lifecycle::Compile => Use::ProgramStartup,
            Lifecycle::CheckpointSave => Use::CheckpointSave,
            Lifecycle::CheckpointLoad => Use::CheckpointRestore,
            Lifecycle::Eval => Use::Evaluation,
        };
        self.timeline.add_interval(Interval {
            used_for,
            attempt: attempt_key(facts.rank.attempt, self.restarts.count(facts.rank.rank)),
            start: facts.start,
            end: facts.end,
        });
        self.progress.on_activity(facts.end);
        if facts.kind == Lifecycle::CheckpointSave {
            self.checkpoints
                .on_save(facts.step, facts.start, facts.end, &mut self.board);
            self.progress.on_save(facts.step);
        }
        self.report(out);
    }

    /// Adds a reading of a GPU of the run, whose points have this resource.
    pub(crate) fn on_gpu(
        &mut self,
        (id, rank): (&Arc<str>, Option<i64>),
        time: UnixNanos,
        reading: GpuReading<'_>,
        resource: &[u8],
        out: &mut Signals,
    ) {
        self.observe_time(time);
        let works = self
            .progress
            .newest()
            .is_some_and(|(_, end)| time <= end.saturating_add(WORKING));
        if !self
            .gpus
            .on_reading(id, rank, time, reading, works, &mut self.board)
        {
            return;
        }
        self.reporter.observe_gpu(id, resource, out);
        self.report_verdicts(out);
    }

    /// Ends a rank. With the last rank that reported, the run's own series end.
    pub(crate) fn on_rank_end(&mut self, rank: i64, time: UnixNanos, out: &mut Signals) {
        self.progress.end();
        if self.reporter.knows(rank) {
            self.ended.insert(rank);
        }
        if self.ended.len() < self.reporter.rank_count() {
            return;
        }
        while let Some(step) = self.alignment.close_first() {
            self.on_aligned(&step, out);
        }
        self.report(out);
        self.reporter.end(time, out);
    }

    /// Advances event time.
    pub(crate) fn on_time(&mut self, now: UnixNanos, out: &mut Signals) {
        if now < self.ticked.saturating_add(TICK) {
            return;
        }
        self.ticked = now;
        self.close_steps(out);
        self.gpus.on_time(now, &mut self.board);
        self.check_progress(now);
        let evicted = self.gpus.evict(now, &mut self.board);
        self.report(out);
        self.reporter.forget_gpus(&evicted);
    }

    /// Closes everything at the end of the input.
    pub(crate) fn finish(&mut self, out: &mut Signals) {
        while let Some(step) = self.alignment.close_first() {
            self.on_aligned(&step, out);
        }
        self.gpus.finish(&mut self.board);
        // A recorded run ends with its last step or interval, even if its GPUs were read after it.
        self.timeline.finish(if self.is_recording() {
            UnixNanos::default()
        } else {
            self.newest
        });
        self.report(out);
    }

    /// Returns the attempt of a step. A trainer that restarts without a new number repeats steps.
    fn attempt_of(&mut self, step: &StepFacts) -> i64 {
        let began = step.start.unwrap_or(step.end);
        let restarts = self
            .restarts
            .on_step(step.rank.rank, step.number, began, step.is_repeated);
        attempt_key(step.rank.attempt, restarts)
    }

    fn observe_progress(&mut self, attempt: i64, step: &RankStep) {
        if self.is_newer(attempt, step.number) {
            self.confirm_stall();
        }
        let stall = self
            .stall(step.start)
            .filter(|_| self.is_newer(attempt, step.number));
        if let Some((since, secs)) = stall {
            // The step itself may be the cause. Then nothing was due between the steps.
            self.open_stall(since, secs, step.start);
        }
        let was_stalled = STALLS.iter().any(|kind| self.board.is_open(*kind, &Subject::Run));
        if was_stalled && self.is_newer(attempt, step.number) {
            self.board.resolve_all(&STALLS, step.end);
        }
        // Telemetry of a recording arrives in any order.
        if !self.is_recording() {
            self.progress.on_lag(self.ticked.secs_since(step.end));
        }
        self.progress.on_step(attempt, step.number, step.end, was_stalled);
    }

    fn is_newer(&self, attempt: i64, number: i64) -> bool {
        attempt >= self.attempt && self.progress.newest().is_none_or(|(newest, _)| number > newest)
    }

    fn close_steps(&mut self, out: &mut Signals) {
        let wait = self.arrivals.wait(self.wait);
        while let Some(step) = self.alignment.next_closed(out.arrival(), wait) {
            self.on_aligned(&step, out);
        }
    }

    fn on_aligned(&mut self, step: &AlignedStep, out: &mut Signals) {
        self.board.set_step(step.number);
        let started = self.timeline.started().unwrap_or(step.start());
        let started = started.min(step.start());
        self.reporter.starts_at(started, out);
        self.reporter.opened_verdicts(started, step.end(), out);
        if step.missing == 0 {
            let is_gone = |subject: &Subject| matches!(subject, Subject::Rank(rank) if step.ranks.iter().all(|there| there.rank != *rank));
            self.board.resolve_where(&OF_A_RANK, is_gone, step.end());
        }
        if let Some(compared) = self.stragglers.on_step(step) {
            self.judge_stragglers(step, &compared);
            self.reporter.scores(step.end(), &compared, out);
        }
        self.waits.on_step(step, &mut self.board);
        self.numbers.on_step(step, &mut self.board);
        self.reporter.data_waits(step, out);
        self.reporter.rank_counts(step, out);
        let stall_secs = self.progress.stall_secs(None);
        if let Some(secs) = stall_secs {
            self.timeline.set_stall_secs(secs);
        }
        // Waits of one step.
        let of_ranks = |part: fn(&RankStep) -> Option<f64>| {
            median(step.ranks.iter().filter_map(part)).unwrap_or_default() * step.covered() as f64
        };
        // A gap as long as a stall is one, although steps ended in it.
        let covered_start = step.covered_start();
        let is_stall = stall_secs.is_some_and(|secs| step.end().secs_since(covered_start) >= secs);
        self.timeline.add_step(RunStep {
            attempt: step.attempt,
            number: step.number,
            covered_start: if is_stall { step.start() } else { covered_start },
            start: step.start(),
            end: step.end(),
            data_secs: of_ranks(|rank| rank.data),
            dispatch_secs: of_ranks(|rank| rank.dispatch_wait),
        });
    }

    fn judge_stragglers(&mut self, step: &AlignedStep, compared: &Comparison) {
        for rank in &compared.ranks {
            let subject = Subject::Rank(rank.rank);
            let is_throttled = self.gpus.is_throttling(rank.rank);
            if rank.is_fast() || is_throttled {
                self.board.resolve(VerdictKind::Straggler, &subject, step.end());
            } else if rank.is_slow() {
                let certainty = if rank.since_start {
                    Certainty::MayBeIntended
                } else {
                    Certainty::Fault
                };
                self.board
                    .open_as(certainty, (VerdictKind::Straggler, subject), step.end(), || {
                        straggler_reason(rank, compared)
                    });
            }
        }
    }

    /// Returns the start and the length in seconds of a time without progress that has no other explanation.
    fn stall(&self, now: UnixNanos) -> Option<(UnixNanos, f64)> {
        let stall = self.progress.stalled_for(now, self.checkpoints.usual_secs())?;
        let lost = self.board.open_since(VerdictKind::GpuLost);
        let is_explained = lost.is_some_and(|since| now < since.saturating_add(GPU_LOST_EXPLAINS));
        (!is_explained).then_some(stall)
    }

    fn check_progress(&mut self, now: UnixNanos) {
        let Some((since, secs)) = self.stall(now) else {
            return;
        };
        if self.is_recording() {
            // The end of a recording is no stall. A later step shows that the run continued.
            if self.unconfirmed_stall.is_none() {
                self.unconfirmed_stall = Some(self.describe_stall(since, secs, now));
            }
            return;
        }
        self.open_stall(since, secs, now);
        self.timeline.stall_until(now);
    }

    /// Returns whether the telemetry is a recording, which may end at any time, and whose ranks may arrive one after
    /// the other.
    fn is_recording(&self) -> bool {
        self.wait == Duration::MAX
    }

    /// Opens the verdict of a stall in a recording after the run made progress again.
    fn confirm_stall(&mut self) {
        if let Some(stall) = self.unconfirmed_stall.take() {
            self.board
                .open(stall.kind, Subject::Run, stall.time, || stall.reason);
        }
    }

    fn open_stall(&mut self, since: UnixNanos, secs: f64, now: UnixNanos) {
        if STALLS.iter().any(|kind| self.board.is_open(*kind, &Subject::Run)) {
            return;
        }
        let stall = self.describe_stall(since, secs, now);
        self.board
            .open(stall.kind, Subject::Run, stall.time, || stall.reason);
    }

    fn describe_stall(&self, since: UnixNanos, secs: f64, now: UnixNanos) -> Stall {
        let (kind, means) = self.gpus.stall_kind(since, now);
        let step = self.progress.newest().map_or(0, |(number, _)| number);
        let gpus = means.map_or_else(
            || "no GPU readings are available".to_owned(),
            |(busy, watts)| format!("the GPUs are {:.0} % busy at {watts:.0} W", busy * 100.0),
        );
        let (kind, guess) = match kind {
            StallKind::Busy => (
                VerdictKind::CollectiveHang,
                "; ranks wait in a collective that one of them does not join",
            ),
            StallKind::Idle => (VerdictKind::Stalled, ""),
        };
        let end = if self.progress.has_plan() {
            ""
        } else {
            " The trainer has not reported its number of steps (train.planned_steps), so the run may also have ended."
        };
        Stall {
            kind,
            time: now,
            reason: format!(
                "No rank has ended a step for {} after step {step}, and {gpus}{guess}.{end}",
                Span(secs)
            ),
        }
    }

    fn report(&mut self, out: &mut Signals) {
        self.report_verdicts(out);
        self.reporter.repeat_verdicts(self.newest.max(self.ticked), out);
        self.reporter.wall_time(&self.timeline, out);
    }

    fn report_verdicts(&mut self, out: &mut Signals) {
        for change in self.board.take_changes() {
            let rank = match &change.subject {
                Subject::Gpu(id) => self.gpus.rank_of(id),
                Subject::Rank(rank) => Some(*rank),
                Subject::Run => None,
            };
            self.reporter.verdict(&change, rank, out);
        }
    }
}

/// Combines an attempt and the restarts inside it to one increasing number.
fn attempt_key(attempt: i64, restarts: i64) -> i64 {
    attempt.saturating_mul(1 << 20).saturating_add(restarts)
}

fn straggler_reason(of: &RankScore, compared: &Comparison) -> String {
    let worst: Vec<String> = compared
        .worst()
        .iter()
        .map(|rank| {
            let score = rank.median_score.unwrap_or(rank.score);
            format!("rank {} {score:.2} ({})", rank.rank, Span(rank.clean_secs))
        })
        .collect();
    let intended = if of.since_start {
        " It has been slow since its first steps: its device is slow, or it has more work than the others, for example a larger pipeline stage."
    } else {
        ""
    };
    format!(
        "Rank {} is slower than the others: the median step takes {}, the lowest scores are {}.{intended}",
        of.rank,
        Span(compared.median),
        worst.join(", ")
    )
}

/// Returns the facts of a step that cross-rank signals need.
fn rank_step(step: &StepFacts) -> RankStep {
    let start = step.start.unwrap_or_else(|| {
        let secs = step.step_secs().unwrap_or_default();
        step.end.minus_secs(secs)
    });
    let covered = step.done.unwrap_or(1);
    let covered_start = step.previous_end.filter(|end| covered > 1 && *end < start);
    let before = [
        Phase::Rollout,
        Phase::ReferenceInference,
        Phase::OldActorInference,
        Phase::Advantage,
        Phase::Environment,
    ];
    RankStep {
        covered_start: covered_start.unwrap_or(start),
        covered,
        data: step.phase(Phase::Data),
        dispatch_wait: step.phase(Phase::DispatchWait),
        forward: step.phase(Phase::Forward),
        backward: step.phase(Phase::Backward),
        other_before_backward: before.into_iter().filter_map(|phase| step.phase(phase)).sum(),
        loss: step.value(&metric::TRAIN_LOSS),
        grad_norm: step.value(&metric::TRAIN_GRAD_NORM),
        sample_pool: step.value(&metric::PERF_SAMPLE_POOL_SIZE),
        infer_capacity: step.value(&metric::PERF_INFER_CAPACITY),
        train_capacity: step.value(&metric::PERF_TRAIN_CAPACITY),
        framework_memory: step.value(&metric::MEMORY_FRAMEWORK_ALLOCATED),
        host_memory: step.value(&metric::MEMORY_HOST_USED),
        ..RankStep::new(step.rank.rank, step.number, start, step.end)
    }
}
