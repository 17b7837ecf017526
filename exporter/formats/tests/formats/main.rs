//! Every format on real samples: each upstream value arrives once, in our unit, and the complete output equals `tests/golden`.
//! `imported::WRITE_GOLDEN` rewrites the golden files.
//!
//! The expectations are read from the samples with plain string code that uses none of our parsers.

mod accounts;
mod agreement;
mod contents;
mod coverage;
mod diagnostics;
mod every_value;
mod expected;
mod foreign;
mod generic;
mod imported;
mod maxtext;
mod mutated;
mod no_value;
mod phrases;
mod ranks;
mod readers;
mod series;
mod suggestions;
mod tensorboard;
mod torchtitan;
mod trainers;
mod tunix;
mod tunix_trace;
mod upstream;
mod value_table;
mod wandb;
mod wrapped;

use imported::Imported;
