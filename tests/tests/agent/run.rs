//! `pulsetrain run`: the trainer as it would be without us, whatever becomes of its telemetry.

mod endpoints;
mod own_format;
mod points;
mod process;
mod signals;
mod terminal;
mod world;
