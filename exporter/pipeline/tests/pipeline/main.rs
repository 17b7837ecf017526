//! The pipeline as its users see it: fake sinks that follow a script, in time that stands still until it is needed.

mod blocking;
mod changing_sinks;
mod door;
mod drain;
mod fake_sink;
mod law;
mod neighbours;
mod receipts;
mod reservation;
mod retry;
mod scenario;
mod signals;
mod sources;
mod stage;
