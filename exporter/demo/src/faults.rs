//! The faults that can be enabled: their description, and their format on the command line.
//!
//! `rows` has the table, one row per fault; `effects` has the values that a row may change; `schedule` begins and ends the
//! faults.

mod effects;
mod rows;
mod schedule;

use std::{fmt, str::FromStr};

pub(crate) use self::{
    effects::{Effects, GpuCondition},
    schedule::{Interruption, Schedule},
};
use self::{
    effects::{FaultContext, ValueChange},
    rows::TABLES,
};
use crate::config::Workload;

/// Number of steps between the beginnings of two faults without a step of their own.
pub(crate) const FAULT_SPACING_STEPS: u64 = 150;

/// A fault of the table.
#[derive(Clone, Copy)]
pub struct FaultRow {
    /// Its name on the command line.
    pub name: &'static str,
    /// The symptoms in the telemetry.
    pub shows: &'static str,
    /// The correct `train.verdict.kind`; `None` for a fault without a verdict, which alerts detect by other metrics.
    pub verdict: Option<&'static str>,
    /// The scope of the fault and of its verdict.
    pub scope: Scope,
    /// Whether the fault is visible only in comparison with other ranks.
    pub compares_ranks: bool,
    /// The only workload that has the fault; `None` if all have it.
    pub workload: Option<Workload>,
    /// The step at which it begins by default.
    pub step: u64,
    /// Its duration in steps, so that it scales with the rate of the job. Zero if it lasts to the end.
    pub lasts: u64,
    action: Action,
}

/// The scope of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The run.
    Run,
    /// One rank.
    Rank,
    /// The GPU of one rank.
    Gpu,
    /// One rank, but the telemetry of the others does not show which: the verdict is about the run.
    UnknownRank,
}

/// The change that a fault makes.
#[derive(Clone, Copy)]
enum Action {
    /// Changes the effects on each step while it lasts.
    Steps(fn(&mut Effects, FaultContext)),
    /// Changes the training metrics of these steps.
    Values(ValueChange),
    /// Changes the condition of the GPU of its rank.
    Gpu(fn(&mut GpuCondition)),
    /// Interrupts the run before a step.
    Interrupts(fn(usize) -> Interruption),
    /// Slows the next checkpoint.
    SlowsCheckpoint,
}

impl FaultRow {
    /// Returns all faults.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        TABLES.iter().copied().flatten()
    }

    /// Returns the fault of a name, or `None` if there is no such fault.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::all().find(|row| row.name == name)
    }

    /// Returns the names of all faults, separated by commas.
    pub fn names() -> String {
        let names: Vec<&str> = Self::all().map(|row| row.name).collect();
        names.join(", ")
    }

    /// Returns whether the fault belongs to one rank, or to its GPU.
    pub fn has_rank(&self) -> bool {
        self.scope != Scope::Run
    }

    fn affects_steps(&self) -> bool {
        matches!(self.action, Action::Steps(_) | Action::Values(_) | Action::Gpu(_))
    }
}

/// Constructors of rows: a scope, a name, the symptoms in the telemetry and the change; by default from step 60 on, for 200
/// steps.
impl FaultRow {
    const fn new(scope: Scope, name: &'static str, shows: &'static str, action: Action) -> Self {
        Self {
            name,
            shows,
            verdict: None,
            scope,
            compares_ranks: false,
            workload: None,
            step: 60,
            lasts: 200,
            action,
        }
    }

    const fn of_run(name: &'static str, shows: &'static str, action: Action) -> Self {
        Self::new(Scope::Run, name, shows, action)
    }

    const fn of_rank(name: &'static str, shows: &'static str, action: Action) -> Self {
        Self::new(Scope::Rank, name, shows, action)
    }

    const fn of_gpu(name: &'static str, shows: &'static str, action: Action) -> Self {
        Self::new(Scope::Gpu, name, shows, action)
    }

    const fn verdict(self, kind: &'static str) -> Self {
        Self {
            verdict: Some(kind),
            ..self
        }
    }

    const fn steps(self, step: u64, lasts: u64) -> Self {
        Self { step, lasts, ..self }
    }

    const fn only(self, workload: Workload) -> Self {
        Self {
            workload: Some(workload),
            ..self
        }
    }

    const fn comparing_ranks(self) -> Self {
        Self {
            compares_ranks: true,
            ..self
        }
    }
}

/// Rows are equal if their names are.
impl PartialEq for FaultRow {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for FaultRow {}

impl fmt::Debug for FaultRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An enabled fault: `NAME[@STEP][:rank=R]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The row of the fault.
    pub row: &'static FaultRow,
    /// The step at which it begins; `None` for that of the table.
    pub step: Option<u64>,
    /// The rank of the fault; `None` for one that is drawn from the seed.
    pub rank: Option<u32>,
}

impl Fault {
    /// Returns the fault with the step of the table and a rank that is drawn from the seed.
    pub fn from_row(row: &'static FaultRow) -> Self {
        Self {
            row,
            step: None,
            rank: None,
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |why: String| format!("{why}; write NAME[@STEP][:rank=R], as in straggler@60:rank=3");
        let (rest, rank) = match text.split_once(':') {
            Some((rest, option)) => {
                let number = option
                    .strip_prefix("rank=")
                    .and_then(|number| number.parse().ok());
                let rank = number.ok_or_else(|| wrong(format!("`{option}` has no rank number")))?;
                (rest, Some(rank))
            }
            None => (text, None),
        };
        let (name, step) = match rest.split_once('@') {
            Some((name, step)) => {
                let number = step.parse().ok().filter(|step| *step > 0);
                (
                    name,
                    Some(number.ok_or_else(|| wrong(format!("`{step}` is not a step")))?),
                )
            }
            None => (rest, None),
        };
        let Some(row) = FaultRow::find(name) else {
            let names = FaultRow::names();
            return Err(wrong(format!("unknown fault `{name}`; the faults are {names}")));
        };
        if rank.is_some() && !row.has_rank() {
            return Err(wrong(format!(
                "the fault {name} affects all ranks and takes no rank"
            )));
        }
        Ok(Self { row, step, rank })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_name_is_parsed_with_optional_step_and_rank() {
        let fault = |step, rank| {
            Ok(Fault {
                row: FaultRow::find("straggler").unwrap(),
                step,
                rank,
            })
        };
        assert_eq!("straggler".parse(), fault(None, None));
        assert_eq!("straggler@7".parse(), fault(Some(7), None));
        assert_eq!("straggler:rank=3".parse(), fault(None, Some(3)));
        assert_eq!("straggler@7:rank=3".parse(), fault(Some(7), Some(3)));
    }

    #[test]
    fn invalid_fault_is_rejected_with_syntax_and_reason() {
        for (text, word) in [
            ("stragler", "telemetry-loss"),
            ("straggler@soon", "`soon` is not a step"),
            ("straggler@0", "`0` is not a step"),
            ("straggler:3", "has no rank number"),
            ("nan-loss:rank=1", "takes no rank"),
        ] {
            let message = Fault::from_str(text).unwrap_err();
            assert!(message.contains(word), "{message}");
            assert!(message.contains("NAME[@STEP][:rank=R]"), "{message}");
        }
    }

    #[test]
    fn fault_names_are_unique_in_the_table() {
        for row in FaultRow::all() {
            let same = FaultRow::all().filter(|other| *other == row);
            assert_eq!(same.count(), 1, "{}", row.name);
        }
    }
}
