//! `pulsetrain demo`: the simulated job through the real pipeline, into files and real backends.

mod backends;
mod command;
mod counts;
pub(crate) mod world;
