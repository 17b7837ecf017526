//! A chain of stages: the output of one, including released items, is the input of the next.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Stage;
use crate::{Batch, clock::Instant};

/// The stages, in the order in which batches pass them; nothing in the place of one that panicked.
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

    /// When the first of them has to let something go.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.iter().flatten().filter_map(|stage| stage.due()).min()
    }

    /// What is due at `now`.
    pub(super) fn release(&mut self, now: Instant) -> Vec<Batch> {
        self.flow(Vec::new(), now, |stage, now, out| stage.release(now, out))
    }

    /// Everything that is held; the stages are gone afterwards.
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
                pass_one(place, batch, now, &mut out);
            }
            if !tried(place, &mut out, |stage, out| call(stage, now, out)) {
                out.extend(take_out(place));
            }
            batches = out;
        }
        batches
    }
}

/// Lets a batch through a stage; past it where it panics.
fn pass_one(place: &mut Option<Box<dyn Stage>>, batch: Batch, now: Instant, out: &mut Vec<Batch>) {
    if place.is_none() {
        return out.push(batch);
    }
    let (kept, before) = (batch.clone(), out.len());
    if !tried(place, out, |stage, out| stage.pass(batch, now, out)) {
        out.truncate(before);
        out.push(kept);
        out.extend(take_out(place));
    }
}

/// Returns whether a stage, if present, handled the call without a panic.
fn tried(
    place: &mut Option<Box<dyn Stage>>,
    out: &mut Vec<Batch>,
    act: impl FnOnce(&mut dyn Stage, &mut Vec<Batch>),
) -> bool {
    let Some(stage) = place else { return true };
    catch_unwind(AssertUnwindSafe(|| act(&mut **stage, out))).is_ok()
}

/// Takes a stage out of its place, with what it can still give away.
fn take_out(place: &mut Option<Box<dyn Stage>>) -> Vec<Batch> {
    let mut out = Vec::new();
    if let Some(mut stage) = place.take() {
        // One that panics here keeps what it has not given away.
        let _ = catch_unwind(AssertUnwindSafe(|| stage.finish(&mut out)));
    }
    out
}
