//! Stages that translate OTLP metrics with the names of a trainer to the names of the registry.
//!
//! Tunix is the one such trainer so far ([`TunixTranslation`]).

mod field_rewrite;
mod tunix_translation;

pub use tunix_translation::TunixTranslation;
