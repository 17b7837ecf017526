//! The energy of a GPU for each run that used it, in steps and outside of them.
//!
//! The energy outside of steps is the growth of the counter since the run began to use the GPU, less the energy of the steps. It is
//! added when a step ends, so that no step in flight counts as time between steps.

use std::sync::Arc;

use pulsetrain_otlp::UnixNanos;

use super::{energy_counter::EnergyCounter, window::Window};

/// The most runs of one GPU that are kept; the oldest is deleted first.
const MAX_RUNS: usize = 32;

/// The runs that used a GPU.
#[derive(Clone, Debug, Default)]
pub(super) struct RunEnergies(Vec<RunEnergy>);

/// The energy of a GPU for one run.
#[derive(Clone, Debug)]
struct RunEnergy {
    run: Arc<str>,
    /// Until when `total` is counted.
    until: UnixNanos,
    /// The growth of the counter since the run began to use the GPU.
    total: f64,
    in_steps: f64,
    /// The energy outside of steps that was returned.
    outside: f64,
    /// The encoded resource of the last step; empty before the first.
    resource: Vec<u8>,
}

/// Energy outside of steps that a run used until a time.
#[derive(Debug)]
pub(super) struct OutsideEnergy {
    pub(super) resource: Vec<u8>,
    pub(super) unix_nanos: UnixNanos,
    pub(super) joules: f64,
}

impl RunEnergies {
    /// Records that a run uses the GPU from a time on.
    pub(super) fn begin(&mut self, run: &Arc<str>, unix_nanos: UnixNanos) {
        self.entry(run, unix_nanos);
    }

    /// Returns the runs.
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().map(|used| &used.run)
    }

    /// Adds a step of a run. Returns the energy outside of steps since the last call. Until `free_from` another run used the GPU:
    /// the energy between steps is counted from then on.
    pub(super) fn add_step(
        &mut self,
        (run, resource): (&Arc<str>, &[u8]),
        counter: &EnergyCounter,
        window: Window,
        joules: f64,
        free_from: UnixNanos,
    ) -> f64 {
        let used = self.entry(run, window.start);
        if used.resource != resource {
            used.resource = resource.to_vec();
        }
        used.until = used.until.max(free_from.min(window.start));
        used.advance(counter, window.end);
        used.in_steps += joules;
        used.take_outside()
    }

    /// Counts the energy until a time, before the readings until then are deleted.
    pub(super) fn advance(&mut self, counter: &EnergyCounter, unix_nanos: UnixNanos) {
        self.0
            .iter_mut()
            .for_each(|used| used.advance(counter, unix_nanos));
    }

    /// Removes the runs for which `used_until` returns the time of the end, and returns the energy since their last steps.
    pub(super) fn end(
        &mut self,
        counter: &EnergyCounter,
        used_until: impl Fn(&Arc<str>) -> Option<UnixNanos>,
    ) -> Vec<OutsideEnergy> {
        let mut ended = Vec::new();
        self.0.retain_mut(|used| {
            let Some(end) = used_until(&used.run) else {
                return true;
            };
            used.advance(counter, end);
            let joules = used.take_outside();
            if joules > 0.0 && !used.resource.is_empty() {
                ended.push(OutsideEnergy {
                    resource: std::mem::take(&mut used.resource),
                    unix_nanos: used.until,
                    joules,
                });
            }
            false
        });
        ended
    }

    fn entry(&mut self, run: &Arc<str>, unix_nanos: UnixNanos) -> &mut RunEnergy {
        let place = match self.0.iter().position(|used| used.run == *run) {
            Some(place) => place,
            None => {
                if self.0.len() >= MAX_RUNS {
                    self.0.remove(0);
                }
                self.0.push(RunEnergy::new(run, unix_nanos));
                self.0.len() - 1
            }
        };
        &mut self.0[place]
    }
}

impl RunEnergy {
    fn new(run: &Arc<str>, unix_nanos: UnixNanos) -> Self {
        Self {
            run: Arc::clone(run),
            until: unix_nanos,
            total: 0.0,
            in_steps: 0.0,
            outside: 0.0,
            resource: Vec::new(),
        }
    }

    fn advance(&mut self, counter: &EnergyCounter, unix_nanos: UnixNanos) {
        if unix_nanos > self.until {
            let added = Window::new(self.until, unix_nanos);
            self.total += counter.energy(added, 0).amount;
            self.until = unix_nanos;
        }
    }

    /// Returns the energy outside of steps that was not returned yet. A step that arrives late lowers the next result.
    fn take_outside(&mut self) -> f64 {
        let new = (self.total - self.in_steps - self.outside).max(0.0);
        self.outside += new;
        new
    }
}
