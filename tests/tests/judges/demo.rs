//! `pulsetrain demo`: the simulated job with the real pipeline, to files and to real backends.

mod backends;
mod command;
mod counts;
pub(crate) mod world;
