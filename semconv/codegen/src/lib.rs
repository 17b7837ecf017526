//! Reads the registry (`semconv/registry/*.yaml`), checks it and writes everything that is generated from it:
//! Rust constants, typed instruments and the tables of the docs.
//!
//! A tool for this workspace, never shipped: `cargo run -p pulsetrain-codegen`.

mod buckets;
mod definition;
mod docs;
mod error;
mod grammar;
mod output;
mod registry;
mod resolve;
mod rules;
mod rust;
mod trainer_sources;
mod ucum;

pub use error::Error;
pub use output::{Output, generate, out_of_date, stale, write};
pub use registry::Registry;
pub use rules::{Violation, check, rule_ids};
