//! Energy of a step over all ranks, if all of them pass here: joules per token.

use std::{collections::VecDeque, sync::Arc};

use super::{assignment::GpuAssignment, pending::Step};

/// The most incomplete steps; at the limit the oldest is dropped.
const MAX_STEPS: usize = 256;

/// Steps that not all ranks have reported.
#[derive(Debug, Default)]
pub(super) struct Totals(VecDeque<Total>);

#[derive(Debug)]
struct Total {
    run: Arc<str>,
    step: i64,
    ranks: usize,
    joules: f64,
    tokens: Option<f64>,
}

impl Totals {
    /// Adds the energy of one step of one rank. Returns the joules per token if it was the last rank of the step.
    pub(super) fn add(&mut self, step: &Step, assignment: &GpuAssignment<'_>, joules: f64) -> Option<f64> {
        let world_size = usize::try_from(assignment.world_size?).ok()?;
        let (run, number) = (step.origin.run_id.clone()?, step.number?);
        let place = self.place(run, number);
        let total = self.0.get_mut(place)?;
        total.ranks += assignment.ranks;
        total.joules += joules;
        // The tokens are those of all devices, so every rank reports the same number.
        total.tokens = step.tokens.or(total.tokens);
        if total.ranks < world_size {
            return None;
        }
        let total = self.0.remove(place)?;
        let tokens = total.tokens.filter(|tokens| *tokens > 0.0)?;
        (total.ranks == world_size).then(|| total.joules / tokens)
    }

    fn place(&mut self, run: Arc<str>, step: i64) -> usize {
        let is_it = |total: &Total| total.run == run && total.step == step;
        if let Some(place) = self.0.iter().rposition(is_it) {
            return place;
        }
        if self.0.len() >= MAX_STEPS {
            self.0.pop_front();
        }
        self.0.push_back(Total {
            run,
            step,
            ranks: 0,
            joules: 0.0,
            tokens: None,
        });
        self.0.len() - 1
    }
}
