//! Stages that give the registry's names to OTLP metrics that trainers send under their own names.
//!
//! Tunix is the one such trainer so far ([`TunixTranslation`]).

mod field_rewrite;
mod tunix_translation;

pub use tunix_translation::TunixTranslation;
