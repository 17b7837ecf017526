//! Every text format on what its system really printed: each upstream value arrives once, in our unit, and the whole
//! output is what it always was (`tests/golden`; `UPDATE_GOLDEN=1` writes it anew).
//!
//! What is expected is worked out from the samples with plain string code and by nothing of ours.

mod agreement;
mod contents;
mod coverage;
mod every_value;
mod expected;
mod foreign;
mod generic;
mod imported;
mod kempnerforge;
mod maxtext;
mod mutated;
mod no_value;
mod ranks;
mod readers;
mod series;
mod tensorboard;
mod torchtitan;
mod trainers;
mod tunix;
mod tunix_trace;
mod upstream;
mod wandb;

use imported::Imported;
