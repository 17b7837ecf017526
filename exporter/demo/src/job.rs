//! The plan of the job: its activities as consecutive segments of time.
//!
//! A segment is a step, a checkpoint, a wait or a similar activity of all ranks together. `timing` has the durations inside a
//! step and the barrier at its end, `curves` the training metrics, `rollout` the sample pool of reinforcement learning.

mod curves;
mod rollout;
mod segment;
mod timing;

use std::{collections::VecDeque, sync::Arc, time::Duration};

pub(crate) use self::{
    curves::{Curves, MoeValues, RlValues, StepValues, samples_of_step},
    segment::{Activity, RankStep, RolloutStep, Segment, StepRun},
    timing::Phase,
};
use pulsetrain_otlp::UnixNanos;

use self::{rollout::SamplePool, timing::Timing};
use crate::{
    config::{DemoConfig, Workload},
    faults::{Effects, Interruption, Schedule},
    random::Random,
    truth::Truth,
};

/// The number of steps between two checkpoints, and between two evaluations.
const CHECKPOINT_EVERY: u64 = 50;
const EVAL_EVERY: u64 = 100;

/// The durations of the activities, in steps.
const INIT: f64 = 0.8;
const COMPILE: f64 = 1.0;
const LOAD: f64 = 3.0;
const SAVE: f64 = 2.0;
const SLOW_SAVE: f64 = 10.0 * SAVE;
const EVAL: f64 = 3.0;
/// The time from the end of an attempt to the start of the next, in steps.
const DOWN: f64 = 20.0;

/// The random stream of activities that belong to no single rank.
const STREAM: u64 = 0x10b;

/// The job.
pub(crate) struct Job {
    steps: u64,
    ranks: usize,
    step_nanos: f64,
    schedule: Schedule,
    timing: Timing,
    curves: Curves,
    pool: Option<SamplePool>,
    random: Random,
    attempt: i64,
    /// The next step.
    step: u64,
    /// The step of the newest checkpoint.
    saved_step: u64,
    /// The end of the planned time.
    now_unix_nanos: UnixNanos,
    /// The time at which each rank is ready for its next step.
    ready_unix_nanos: Vec<UnixNanos>,
    planned: VecDeque<Segment>,
    /// The effects of the faults in the newest step; before the first step, those of the faults that begin with it.
    effects: Arc<Effects>,
    is_saved: bool,
    is_evaluated: bool,
}

impl Job {
    /// Returns the job; `gpu_id` names the GPU of a rank.
    pub(crate) fn new(config: &DemoConfig, gpu_id: impl Fn(usize) -> String) -> Self {
        let ranks = config.ranks as usize;
        let schedule = Schedule::new(config, gpu_id);
        let effects = Arc::new(schedule.effects_at_start());
        let mut job = Self {
            steps: config.steps,
            ranks,
            step_nanos: config.step_time.as_nanos() as f64,
            schedule,
            timing: Timing::new(config),
            curves: Curves::new(config),
            pool: (config.workload == Workload::Rl).then(|| SamplePool::new(config)),
            random: Random::new(config.seed, STREAM),
            attempt: 0,
            step: 1,
            saved_step: 0,
            now_unix_nanos: config.start_unix_nanos,
            ready_unix_nanos: vec![config.start_unix_nanos; ranks],
            planned: VecDeque::new(),
            effects,
            is_saved: true,
            is_evaluated: true,
        };
        job.plan_start();
        job
    }

    /// Returns the faults so far.
    pub(crate) fn truths(&self) -> &[Truth] {
        self.schedule.truths()
    }

    /// Plans the next segment; `None` at the end of the job.
    pub(crate) fn next_segment(&mut self) -> Option<Segment> {
        if self.planned.is_empty() {
            self.plan();
        }
        self.planned.pop_front()
    }

    fn plan(&mut self) {
        let done = self.step - 1;
        let is_held_back = self.effects.holds_checkpoints;
        if done > 0 && done.is_multiple_of(CHECKPOINT_EVERY) && !self.is_saved && !is_held_back {
            self.plan_save(done);
        } else if done > 0 && done.is_multiple_of(EVAL_EVERY) && !self.is_evaluated {
            self.plan_eval(done);
        } else if self.step <= self.steps {
            match self.schedule.interruption(self.step, self.now_unix_nanos) {
                Some((interruption, steps)) => self.plan_interruption(interruption, steps as f64),
                None => self.plan_step(),
            }
        }
    }

    /// Plans the start of an attempt.
    fn plan_start(&mut self) {
        self.take(INIT, 0.05, Activity::Init);
        if self.attempt > 0 {
            let step = self.saved_step;
            self.take(LOAD, 0.05, Activity::Load { step });
        }
        self.take(COMPILE, 0.05, Activity::Compile);
    }

    fn plan_step(&mut self) {
        let effects = self.schedule.effects(self.step, self.now_unix_nanos);
        let rollout = self.pool.as_mut().map(|pool| pool.begin_step(&effects));
        let wait = rollout.as_ref().map_or(Duration::ZERO, |rollout| rollout.wait);
        let ranks = self.timing.step(&self.ready_unix_nanos, &effects, wait);
        let values = self.curves.step(self.step, &effects);
        self.effects = Arc::new(effects);
        for (ready, rank) in self.ready_unix_nanos.iter_mut().zip(&ranks) {
            *ready = rank.end_unix_nanos;
        }
        let end = self.ready_unix_nanos.iter().copied().max();
        let end = end.unwrap_or(self.now_unix_nanos);
        let rollout = rollout.zip(self.pool.as_mut()).map(|(rollout, pool)| {
            pool.end_step(&rollout, end.saturating_duration_since(self.now_unix_nanos));
            rollout
        });
        let step = StepRun {
            step: self.step,
            ranks,
            values,
            rollout,
        };
        self.step += 1;
        (self.is_saved, self.is_evaluated) = (false, false);
        self.push(end, Activity::Step(Box::new(step)));
    }

    fn plan_save(&mut self, step: u64) {
        self.is_saved = true;
        self.saved_step = step;
        let is_slow = self.schedule.slows_checkpoint(step);
        let start = self.now_unix_nanos;
        let steps = if is_slow { SLOW_SAVE } else { SAVE };
        self.take(steps, 0.08, Activity::Save { step });
        if is_slow {
            self.schedule
                .record_slow_checkpoint(step, start, self.now_unix_nanos);
        }
    }

    fn plan_eval(&mut self, step: u64) {
        self.is_evaluated = true;
        let loss = self.curves.eval_loss(step) * self.effects.eval_loss;
        self.take(EVAL, 0.04, Activity::Eval { step, loss });
    }

    fn plan_interruption(&mut self, interruption: Interruption, steps: f64) {
        let lost = match interruption {
            Interruption::Stall => {
                self.take(steps, 0.02, Activity::Stalled);
                self.schedule.end_interruption(self.step, self.now_unix_nanos);
                return;
            }
            Interruption::Kill => {
                self.step = self.steps + 1;
                (self.is_saved, self.is_evaluated) = (true, true);
                return;
            }
            Interruption::Hang => None,
            Interruption::GpuLost(rank) => Some(rank),
        };
        self.take(steps, 0.02, Activity::Hanging { lost });
        self.take(DOWN, 0.05, Activity::Down { lost });
        self.schedule.end_interruption(self.step, self.now_unix_nanos);
        self.attempt += 1;
        self.step = self.saved_step + 1;
        (self.is_saved, self.is_evaluated) = (true, true);
        self.timing.restart();
        self.plan_start();
    }

    /// Plans an activity of all ranks that takes about this number of steps.
    fn take(&mut self, steps: f64, deviation: f64, activity: Activity) {
        let nanos = (steps * self.step_nanos * self.random.factor(deviation)) as u64;
        let end = self.now_unix_nanos.saturating_add(Duration::from_nanos(nanos));
        self.ready_unix_nanos.fill(end);
        self.push(end, activity);
    }

    fn push(&mut self, end_unix_nanos: UnixNanos, activity: Activity) {
        self.planned.push_back(Segment {
            attempt: self.attempt,
            start_unix_nanos: self.now_unix_nanos,
            end_unix_nanos,
            activity,
            effects: Arc::clone(&self.effects),
        });
        self.now_unix_nanos = end_unix_nanos;
        debug_assert_eq!(self.ready_unix_nanos.len(), self.ranks);
    }
}
