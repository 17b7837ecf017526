//! OTLP protobuf bytes, and everything that reads or writes them.
//!
//! [`view`] reads bytes in place, [`mod@write`] makes them. Nothing here knows where bytes come from or go to.

pub mod attributes;
pub mod descriptor;
pub mod frames;
pub mod json;
pub mod limits;
pub mod split;
pub mod view;
pub mod wire;
pub mod write;

mod check;
mod lookup;
mod place;
mod signal;
mod signals;
mod unix_nanos;

pub use signal::Signal;
pub use signals::Signals;
pub use unix_nanos::UnixNanos;
pub use wire::{WireError, WireErrorKind};

/// The examples of the README, which are tried with the documentation's own.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
