//! What a step took over all ranks, where all of them are heard here: joules for a token.

use std::{collections::VecDeque, sync::Arc};

use super::{share::Share, steps::Step};

/// How many steps may be incomplete at a time; the oldest is given up.
const MOST: usize = 256;

/// Steps of which not all ranks have come.
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
    /// Adds what the GPUs of one step of one rank took. Gives the joules for a token when it was the last of its step.
    pub(super) fn add(&mut self, step: &Step, share: &Share<'_>, joules: f64) -> Option<f64> {
        let world_size = usize::try_from(share.world_size?).ok()?;
        let (run, number) = (step.origin.run.clone()?, step.number?);
        let place = self.place(run, number);
        let total = self.0.get_mut(place)?;
        total.ranks += share.ranks;
        total.joules += joules;
        // All ranks that say it say the same: it is of all devices.
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
        if self.0.len() >= MOST {
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
