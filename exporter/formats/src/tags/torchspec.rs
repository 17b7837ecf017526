//! What limits a run of TorchSpec, read from the tags of its steps.

mod bottleneck;

pub(crate) use bottleneck::{Reading, StepReading};

/// Its name in `mappings/`.
pub(super) const NAME: &str = "torchspec";
