//! Readers and writers of OTLP protobuf bytes.
//!
//! [`view`] reads bytes in place, [`walk`] visits what they contain, [`mod@write`] encodes them. This crate does no network or file I/O of its own.

pub mod attributes;
pub mod descriptor;
pub mod frames;
pub mod json;
pub mod limits;
pub mod split;
pub mod view;
pub mod walk;
pub mod wire;
pub mod write;

mod check;
mod lookup;
mod place;
mod signal;
mod signals;
mod skip;
mod unix_nanos;

pub use signal::Signal;
pub use signals::Signals;
pub use unix_nanos::UnixNanos;
pub use wire::{WireError, WireErrorKind};

/// The examples of the README, compiled and run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
