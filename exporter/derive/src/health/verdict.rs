//! Verdicts: one state machine for every detected condition.
//!
//! A detector reports the level of its condition with each input. The board opens a verdict when the
//! condition holds and resolves it when the condition is gone. Between the two levels an open verdict stays
//! open (hysteresis). Each kind and subject has at most one verdict.

use std::{collections::BTreeMap, fmt, sync::Arc};

use super::UnixNanos;

/// The maximum number of open verdicts of a run.
const MAX_OPEN: usize = 4096;

/// The condition of a verdict. Its text is the value of `train.verdict.kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum VerdictKind {
    /// One rank is slower than the others, step after step.
    Straggler,
    /// Steps wait for their data.
    DataStarved,
    /// Training waits for samples of inference or rollout.
    InferenceBound,
    /// The loss is NaN or infinite.
    NonfiniteLoss,
    /// The loss is far above its recent values.
    LossSpike,
    /// The gradient norm is far above its recent values.
    GradNormSpike,
    /// Heat or a power brake reduces the clocks of a GPU.
    GpuThrottled,
    /// The driver reported an XID error of a GPU.
    GpuXid,
    /// A GPU no longer answers.
    GpuLost,
    /// No rank ends a step, and the GPUs are idle.
    Stalled,
    /// No rank ends a step, and the GPUs are busy at low power.
    CollectiveHang,
    /// A checkpoint took far longer than those before it.
    CheckpointSlow,
    /// Memory in use grows steadily.
    MemoryLeak,
    /// A rank sends no telemetry while others continue.
    TelemetryLost,
}

/// The subject of a verdict.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Subject {
    /// The run.
    Run,
    /// A rank.
    Rank(i64),
    /// A GPU, by its `gpu.id`.
    Gpu(Arc<str>),
}

/// The level of a condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Level {
    /// The condition holds. The text is the reason: one sentence with figures.
    Holds(String),
    /// The condition is gone.
    Gone,
}

/// The change of a verdict.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) kind: VerdictKind,
    pub(crate) subject: Subject,
    pub(crate) is_open: bool,
    /// The time when the condition was established, in event time.
    pub(crate) time: UnixNanos,
    /// The newest step at that time.
    pub(crate) step: Option<i64>,
    pub(crate) reason: String,
    pub(crate) certainty: Certainty,
}

/// The certainty that the condition is a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// It is a fault.
    #[default]
    Fault,
    /// It may be intended: information, and no warning.
    MayBeIntended,
}

/// The open verdicts of a run, and the changes to send.
#[derive(Debug, Default)]
pub(crate) struct Board {
    open: BTreeMap<(VerdictKind, Subject), Open>,
    changes: Vec<Change>,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    since: UnixNanos,
    certainty: Certainty,
}

impl VerdictKind {
    pub(crate) const ALL: [Self; 14] = [
        Self::Straggler,
        Self::DataStarved,
        Self::InferenceBound,
        Self::NonfiniteLoss,
        Self::LossSpike,
        Self::GradNormSpike,
        Self::GpuThrottled,
        Self::GpuXid,
        Self::GpuLost,
        Self::Stalled,
        Self::CollectiveHang,
        Self::CheckpointSlow,
        Self::MemoryLeak,
        Self::TelemetryLost,
    ];

    /// Returns the value of `train.verdict.kind`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Straggler => "straggler",
            Self::DataStarved => "data_starved",
            Self::InferenceBound => "inference_bound",
            Self::NonfiniteLoss => "nonfinite_loss",
            Self::LossSpike => "loss_spike",
            Self::GradNormSpike => "grad_norm_spike",
            Self::GpuThrottled => "gpu_throttled",
            Self::GpuXid => "gpu_xid",
            Self::GpuLost => "gpu_lost",
            Self::Stalled => "stalled",
            Self::CollectiveHang => "collective_hang",
            Self::CheckpointSlow => "checkpoint_slow",
            Self::MemoryLeak => "memory_leak",
            Self::TelemetryLost => "telemetry_lost",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => f.write_str("the run"),
            Self::Rank(rank) => write!(f, "rank {rank}"),
            Self::Gpu(id) => f.write_str(id),
        }
    }
}

impl Board {
    /// Sets the newest step, which later changes carry.
    pub(crate) fn set_step(&mut self, step: i64) {
        self.step = Some(step);
    }

    /// Opens a verdict if it is not open.
    pub(crate) fn open(
        &mut self,
        kind: VerdictKind,
        subject: Subject,
        time: UnixNanos,
        reason: impl FnOnce() -> String,
    ) {
        self.open_as(Certainty::Fault, (kind, subject), time, reason);
    }

    /// Opens a verdict if it is not open. One that may be intended is opened again as a fault.
    pub(crate) fn open_as(
        &mut self,
        certainty: Certainty,
        key: (VerdictKind, Subject),
        time: UnixNanos,
        reason: impl FnOnce() -> String,
    ) {
        let mut since = time;
        match self.open.get(&key) {
            Some(open) if open.certainty == certainty || certainty == Certainty::MayBeIntended => return,
            Some(open) => since = open.since,
            None if self.open.len() >= MAX_OPEN => return,
            None => {}
        }
        self.open.insert(key.clone(), Open { since, certainty });
        let (kind, subject) = key;
        self.changes.push(Change {
            kind,
            subject,
            is_open: true,
            time,
            step: self.step,
            reason: reason(),
            certainty,
        });
    }

    /// Resolves a verdict if it is open.
    pub(crate) fn resolve(&mut self, kind: VerdictKind, subject: &Subject, time: UnixNanos) {
        let Some(Open { since, certainty }) = self.open.remove(&(kind, subject.clone())) else {
            return;
        };
        let secs = time.secs_since(since);
        self.changes.push(Change {
            kind,
            subject: subject.clone(),
            is_open: false,
            time: time.max(since),
            step: self.step,
            reason: format!("The condition of {subject} ended after {}.", Span(secs)),
            certainty,
        });
    }

    /// Opens or resolves a verdict. `None` changes nothing.
    pub(crate) fn set(&mut self, kind: VerdictKind, subject: Subject, time: UnixNanos, level: Option<Level>) {
        match level {
            Some(Level::Holds(reason)) => self.open(kind, subject, time, || reason),
            Some(Level::Gone) => self.resolve(kind, &subject, time),
            None => {}
        }
    }

    /// Resolves all verdicts of these kinds.
    pub(crate) fn resolve_all(&mut self, kinds: &[VerdictKind], time: UnixNanos) {
        self.resolve_where(kinds, |_| true, time);
    }

    /// Resolves the verdicts of these kinds whose subject `is_gone`.
    pub(crate) fn resolve_where(
        &mut self,
        kinds: &[VerdictKind],
        is_gone: impl Fn(&Subject) -> bool,
        time: UnixNanos,
    ) {
        if self.open.is_empty() {
            return;
        }
        let ended: Vec<(VerdictKind, Subject)> = self
            .open
            .keys()
            .filter(|(kind, subject)| kinds.contains(kind) && is_gone(subject))
            .cloned()
            .collect();
        for (kind, subject) in ended {
            self.resolve(kind, &subject, time);
        }
    }

    /// Returns whether a verdict is open.
    pub(crate) fn is_open(&self, kind: VerdictKind, subject: &Subject) -> bool {
        self.open.contains_key(&(kind, subject.clone()))
    }

    /// Returns the time of the first open verdict of a kind, whatever its subject.
    pub(crate) fn open_since(&self, kind: VerdictKind) -> Option<UnixNanos> {
        let of_kind = self.open.iter().filter(|((open, _), _)| *open == kind);
        of_kind.map(|(_, open)| open.since).min()
    }

    /// Takes the changes since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }
}

#[cfg(test)]
impl VerdictKind {
    /// Returns the changes of a verdict that is open from one time to another.
    pub(crate) fn lasts(self, from: u64, to: u64) -> [(Self, bool, u64); 2] {
        [(self, true, from), (self, false, to)]
    }
}

#[cfg(test)]
impl Board {
    /// Takes what `of` returns for the changes since the last call.
    pub(crate) fn map_changes<T>(&mut self, of: impl Fn(Change) -> T) -> Vec<T> {
        self.take_changes().into_iter().map(of).collect()
    }
}

/// Formats a duration: `0.25 s`, `42 s`, `7 min`, `3.5 h`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span(pub(crate) f64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.0;
        if secs < 10.0 {
            write!(f, "{secs:.2} s")
        } else if secs < 120.0 {
            write!(f, "{secs:.0} s")
        } else if secs < 7200.0 {
            write!(f, "{:.0} min", secs / 60.0)
        } else {
            write!(f, "{:.1} h", secs / 3600.0)
        }
    }
}

/// Formats a number of bytes: `512 MiB`, `79.6 GiB`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes(pub(crate) f64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MEBI: f64 = 1_048_576.0;
        const GIBI: f64 = 1_073_741_824.0;
        if self.0.abs() >= GIBI {
            write!(f, "{:.1} GiB", self.0 / GIBI)
        } else {
            write!(f, "{:.1} MiB", self.0 / MEBI)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_opens_once_and_resolves_once() {
        let mut board = Board::default();
        board.set_step(7);
        let holds = || Some(Level::Holds("slow".to_owned()));
        board.set(VerdictKind::Straggler, Subject::Rank(3), UnixNanos(1), holds());
        board.set(VerdictKind::Straggler, Subject::Rank(3), UnixNanos(2), holds());
        board.set(VerdictKind::Straggler, Subject::Rank(3), UnixNanos(3), None);
        assert!(board.is_open(VerdictKind::Straggler, &Subject::Rank(3)));
        board.set(
            VerdictKind::Straggler,
            Subject::Rank(3),
            UnixNanos(5_000_000_001),
            Some(Level::Gone),
        );
        board.set(
            VerdictKind::Straggler,
            Subject::Rank(3),
            UnixNanos(6),
            Some(Level::Gone),
        );
        let changes = board.take_changes();
        let states: Vec<(bool, u64, Option<i64>)> = changes
            .iter()
            .map(|change| (change.is_open, change.time.0, change.step))
            .collect();
        assert_eq!(states, [(true, 1, Some(7)), (false, 5_000_000_001, Some(7))]);
        assert_eq!(changes[1].reason, "The condition of rank 3 ended after 5.00 s.");
    }

    #[test]
    fn verdicts_of_different_subjects_are_independent() {
        let mut board = Board::default();
        board.open(
            VerdictKind::GpuXid,
            Subject::Gpu("GPU-1".into()),
            UnixNanos(1),
            String::new,
        );
        board.open(
            VerdictKind::GpuXid,
            Subject::Gpu("GPU-2".into()),
            UnixNanos(2),
            String::new,
        );
        assert_eq!(board.open_since(VerdictKind::GpuXid), Some(UnixNanos(1)));
        board.resolve_all(&[VerdictKind::GpuXid], UnixNanos(3));
        assert_eq!(board.take_changes().len(), 4);
    }
}
