//! The bottleneck of a TorchSpec run, derived from the tags of its steps.

mod bottleneck;

pub(crate) use bottleneck::{Reading, StepReading};

/// The name of the trainer in `mappings/`.
pub(super) const NAME: &str = "torchspec";
