//! Readers of the samples, one a format, in plain code that uses none of our parsers.

mod binary;
mod goodput;
mod json;
mod lines;
mod surogate_console;
mod torchspec;

pub(crate) use binary::{event_file, trace, wandb};
pub(crate) use goodput::goodput_entries;
pub(crate) use json::{
    any_json, hf_state, maxtext_metrics, surogate, surogate_jsonl, torchtitan_structured, tunix_console,
    tunix_otlp,
};
pub(crate) use lines::{any_pairs, hf_trainer, kempnerforge, maxtext, megatron, torchtitan, tunix};
pub(crate) use surogate_console::surogate_console;
pub(crate) use torchspec::torchspec;

/// Reads the complete contents of a sample.
pub(crate) type Reader = fn(&[u8]) -> crate::expected::ExpectedLog;
