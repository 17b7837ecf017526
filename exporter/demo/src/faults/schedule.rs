//! The schedule of the faults: their begin, their end, and their ground truth.

use pulsetrain_otlp::UnixNanos;

use super::{
    Action, FaultRow, Scope,
    effects::{Effects, FaultContext},
};
use crate::{
    config::DemoConfig,
    random::Random,
    truth::{Subject, Truth},
};

/// The random stream of ranks and codes.
const STREAM: u64 = 0xfa;

/// The reason that the run makes no progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Interruption {
    /// The run is idle for a while, and resumes.
    Stall,
    /// A rank never joins the collective of the others; the run is killed and restarts.
    Hang,
    /// The GPU of a rank is lost; the run is killed and restarts.
    GpuLost(usize),
    /// The run is killed and not restarted.
    Kill,
}

/// All faults of a job.
#[derive(Debug)]
pub(crate) struct Schedule {
    faults: Vec<Scheduled>,
    ranks: usize,
    truths: Vec<Truth>,
}

#[derive(Debug)]
struct Scheduled {
    row: &'static FaultRow,
    step: u64,
    rank: usize,
    subject: Subject,
    draw: u64,
    state: FaultState,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FaultState {
    Waiting,
    Active { steps: u64, truth: usize },
    Over,
}

impl Schedule {
    /// Returns the faults of a job; `gpu_id` names the GPU of a rank.
    pub(crate) fn new(config: &DemoConfig, gpu_id: impl Fn(usize) -> String) -> Self {
        let ranks = config.ranks as usize;
        let scheduled = |(place, (fault, step)): (usize, (&super::Fault, u64))| {
            let mut random = Random::new(config.seed, STREAM + ((place as u64) << 8));
            // Rank 0 is avoided if there are others, because it sends the run's own values.
            let drawn = 1 + (random.uniform() * (ranks.saturating_sub(1)) as f64) as usize;
            let rank = fault.rank.map_or(drawn % ranks, |rank| rank as usize);
            let row = fault.row;
            Scheduled {
                row,
                step,
                rank,
                subject: subject(row, rank, &gpu_id),
                draw: random.next(),
                state: FaultState::Waiting,
            }
        };
        let faults = config.faults.iter().zip(config.fault_steps());
        Self {
            faults: faults.enumerate().map(scheduled).collect(),
            ranks,
            truths: Vec::new(),
        }
    }

    /// Returns the faults so far.
    pub(crate) fn truths(&self) -> &[Truth] {
        &self.truths
    }

    /// Returns the effects before the first step of the faults that begin with it.
    pub(crate) fn effects_at_start(&self) -> Effects {
        let mut effects = Effects::none(self.ranks);
        let faults = self.faults.iter().filter(|fault| fault.step <= 1);
        faults.for_each(|fault| fault.apply(0, &mut effects));
        effects
    }

    /// Begins and ends faults before a step that starts at `now_unix_nanos`, and returns the effects of the active ones.
    pub(crate) fn effects(&mut self, step: u64, now_unix_nanos: UnixNanos) -> Effects {
        let mut effects = Effects::none(self.ranks);
        for fault in self.faults.iter_mut().filter(|fault| fault.row.affects_steps()) {
            fault.end_when_over(step, now_unix_nanos, &mut self.truths);
            if fault.state == FaultState::Waiting && step >= fault.step {
                fault.begin(step, now_unix_nanos, &mut self.truths);
            }
            if let FaultState::Active { steps, .. } = &mut fault.state {
                *steps += 1;
                let steps = *steps;
                fault.apply(steps, &mut effects);
            }
        }
        effects
    }

    /// Begins the interruption that is due before a step, if there is one. Returns it with its duration in steps.
    pub(crate) fn interruption(
        &mut self,
        step: u64,
        now_unix_nanos: UnixNanos,
    ) -> Option<(Interruption, u64)> {
        let is_due = |fault: &&mut Scheduled| {
            fault.interruption().is_some() && fault.state == FaultState::Waiting && step >= fault.step
        };
        let fault = self.faults.iter_mut().find(is_due)?;
        fault.begin(step, now_unix_nanos, &mut self.truths);
        fault
            .interruption()
            .map(|interruption| (interruption, fault.row.lasts))
    }

    /// Ends the active interruption.
    pub(crate) fn end_interruption(&mut self, step: u64, now_unix_nanos: UnixNanos) {
        for fault in self
            .faults
            .iter_mut()
            .filter(|fault| fault.interruption().is_some())
        {
            fault.end(step, now_unix_nanos, &mut self.truths);
        }
    }

    /// Returns whether the checkpoint after a step is a slow one.
    pub(crate) fn slows_checkpoint(&mut self, step: u64) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.slows_checkpoint() && fault.state == FaultState::Waiting && step >= fault.step)
    }

    /// Records the slow checkpoint.
    pub(crate) fn record_slow_checkpoint(
        &mut self,
        step: u64,
        start_unix_nanos: UnixNanos,
        end_unix_nanos: UnixNanos,
    ) {
        for fault in self.faults.iter_mut().filter(|fault| fault.slows_checkpoint()) {
            if fault.state == FaultState::Waiting && step >= fault.step {
                fault.begin(step, start_unix_nanos, &mut self.truths);
                fault.end(step, end_unix_nanos, &mut self.truths);
            }
        }
    }
}

impl Scheduled {
    fn interruption(&self) -> Option<Interruption> {
        match self.row.action {
            Action::Interrupts(interruption) => Some(interruption(self.rank)),
            _ => None,
        }
    }

    fn slows_checkpoint(&self) -> bool {
        matches!(self.row.action, Action::SlowsCheckpoint)
    }

    fn begin(&mut self, step: u64, now_unix_nanos: UnixNanos, truths: &mut Vec<Truth>) {
        self.state = FaultState::Active {
            steps: 0,
            truth: truths.len(),
        };
        truths.push(Truth {
            fault: self.row,
            subject: self.subject.clone(),
            first_step: step,
            last_step: None,
            start_unix_nanos: now_unix_nanos,
            end_unix_nanos: None,
        });
    }

    fn end_when_over(&mut self, step: u64, now_unix_nanos: UnixNanos, truths: &mut [Truth]) {
        if let FaultState::Active { steps, .. } = self.state
            && self.row.lasts > 0
            && steps >= self.row.lasts
        {
            self.end(step.saturating_sub(1), now_unix_nanos, truths);
        }
    }

    fn end(&mut self, last_step: u64, now_unix_nanos: UnixNanos, truths: &mut [Truth]) {
        if let FaultState::Active { truth, .. } = self.state {
            truths[truth].last_step = Some(last_step);
            truths[truth].end_unix_nanos = Some(now_unix_nanos);
            self.state = FaultState::Over;
        }
    }

    /// Adds the effects of the fault in its `steps`th step.
    fn apply(&self, steps: u64, effects: &mut Effects) {
        let place = FaultContext {
            rank: self.rank,
            steps,
            draw: self.draw,
        };
        match self.row.action {
            Action::Steps(change) => change(effects, place),
            Action::Values(change) => effects.values.push((change, steps)),
            Action::Gpu(change) => change(&mut effects.gpus[self.rank]),
            Action::Interrupts(_) | Action::SlowsCheckpoint => {}
        }
    }
}

fn subject(row: &FaultRow, rank: usize, gpu_id: impl Fn(usize) -> String) -> Subject {
    match row.scope {
        Scope::Run | Scope::UnknownRank => Subject::Run,
        Scope::Rank => Subject::Rank(rank as i64),
        Scope::Gpu => Subject::Gpu {
            id: gpu_id(rank),
            rank: rank as i64,
        },
    }
}
