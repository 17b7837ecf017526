//! `pulsetrain run`: the trainer behaves as without us, also if its telemetry cannot be delivered.

mod endpoints;
mod own_format;
mod points;
mod process;
mod processes;
mod settings;
mod signals;
mod terminal;
mod unharmed;
mod world;
