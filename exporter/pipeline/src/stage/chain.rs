//! A chain of stages: the output of one, including released items, is the input of the next.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Stage;
use crate::{Batch, clock::Instant};

/// The stages, in the order in which batches pass them; `None` in the place of a stage that panicked.
pub(super) struct Chain(Vec<Option<Box<dyn Stage>>>);

/// A call of a stage in addition to the batches that it receives.
type Call = fn(&mut dyn Stage, Instant, &mut Vec<Batch>);

impl Chain {
    pub(super) fn new(stages: Vec<Box<dyn Stage>>) -> Self {
        Self(stages.into_iter().map(Some).collect())
    }

    /// Passes a batch through all stages and returns the batches that leave the last one.
    pub(super) fn pass(&mut self, batch: Batch, now: Instant) -> Vec<Batch> {
        self.flow(vec![batch], now, |_, _, _| {})
    }

    /// Returns the earliest time at which a stage has to release an item.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.iter().flatten().filter_map(|stage| stage.due()).min()
    }

    /// Returns the batches that are due at `now`.
    pub(super) fn release(&mut self, now: Instant) -> Vec<Batch> {
        self.flow(Vec::new(), now, |stage, now, out| stage.release(now, out))
    }

    /// Returns all batches that the stages hold, and removes the stages.
    pub(super) fn finish(&mut self, now: Instant) -> Vec<Batch> {
        let all = self.flow(Vec::new(), now, |stage, _, out| stage.finish(out));
        self.0.clear();
        all
    }

    /// Passes batches through all stages and makes `call` on each stage after its input.
    fn flow(&mut self, mut batches: Vec<Batch>, now: Instant, call: Call) -> Vec<Batch> {
        for place in &mut self.0 {
            let mut out = Vec::with_capacity(batches.len());
            for batch in batches {
                pass_through_stage(place, batch, now, &mut out);
            }
            if !ran_without_panic(place, &mut out, |stage, out| call(stage, now, out)) {
                out.extend(take_out(place));
            }
            batches = out;
        }
        batches
    }
}

/// Passes a batch through a stage, or past it if the stage panics.
fn pass_through_stage(place: &mut Option<Box<dyn Stage>>, batch: Batch, now: Instant, out: &mut Vec<Batch>) {
    if place.is_none() {
        return out.push(batch);
    }
    let (kept, before) = (batch.clone(), out.len());
    if !ran_without_panic(place, out, |stage, out| stage.pass(batch, now, out)) {
        out.truncate(before);
        out.push(kept);
        out.extend(take_out(place));
    }
}

/// Returns whether a stage, if present, handled the call without a panic.
fn ran_without_panic(
    place: &mut Option<Box<dyn Stage>>,
    out: &mut Vec<Batch>,
    act: impl FnOnce(&mut dyn Stage, &mut Vec<Batch>),
) -> bool {
    let Some(stage) = place else { return true };
    catch_unwind(AssertUnwindSafe(|| act(&mut **stage, out))).is_ok()
}

/// Removes a stage from its place, and returns the batches that it can still release.
fn take_out(place: &mut Option<Box<dyn Stage>>) -> Vec<Batch> {
    let mut out = Vec::new();
    if let Some(mut stage) = place.take() {
        // A stage that panics here keeps the batches that it has not released.
        let _ = catch_unwind(AssertUnwindSafe(|| stage.finish(&mut out)));
    }
    out
}
