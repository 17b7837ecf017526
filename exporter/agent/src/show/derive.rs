//! The stage that derives the signals of files that are read sequentially.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pulsetrain_derive::SignalsStage;
use pulsetrain_pipeline::{Batch, Stage, clock::Instant};

use crate::topology;

/// The group of the files that are being read; changed between two files.
#[derive(Clone, Debug, Default)]
pub(super) struct Derivation(Arc<AtomicUsize>);

/// Derives the signals of each group of files separately: the event time of one run must not make another one look
/// stalled.
#[derive(Debug)]
pub(super) struct DeriveByGroup {
    derivation: Derivation,
    current: Option<(usize, SignalsStage)>,
}

impl Derivation {
    /// Starts a group of files; `None` for files with derived signals.
    pub(super) fn set(&self, group: Option<usize>) {
        self.0.store(group.map_or(0, |group| group + 1), Ordering::SeqCst);
    }

    fn group(&self) -> Option<usize> {
        self.0.load(Ordering::SeqCst).checked_sub(1)
    }

    /// Returns the stage that follows this value.
    pub(super) fn stage(&self) -> Box<dyn Stage> {
        Box::new(DeriveByGroup {
            derivation: self.clone(),
            current: None,
        })
    }
}

impl Stage for DeriveByGroup {
    fn pass(&mut self, batch: Batch, now: Instant, out: &mut Vec<Batch>) {
        let group = self.derivation.group();
        if self.current.as_ref().map(|(group, _)| *group) != group {
            self.finish(out);
            self.current = group.map(|group| (group, topology::imported_signals(false)));
        }
        match &mut self.current {
            Some((_, stage)) => stage.pass(batch, now, out),
            None => out.push(batch),
        }
    }

    fn due(&self) -> Option<Instant> {
        self.current.as_ref().and_then(|(_, stage)| stage.due())
    }

    fn release(&mut self, now: Instant, out: &mut Vec<Batch>) {
        if let Some((_, stage)) = &mut self.current {
            stage.release(now, out);
        }
    }

    fn finish(&mut self, out: &mut Vec<Batch>) {
        if let Some((_, mut stage)) = self.current.take() {
            stage.finish(out);
        }
    }
}
