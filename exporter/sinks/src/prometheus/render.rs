//! The page: everything in the store, piece by piece.
//!
//! A piece is a few hundred series of one family, written while the family is locked. Between pieces nothing is locked, so
//! neither a slow reader nor a large page holds up what comes in.

mod classic;
pub(super) mod go_float;
mod number;
mod page;
mod protobuf;
mod sample_name;
mod text;

pub(super) use page::{Format, Page};
