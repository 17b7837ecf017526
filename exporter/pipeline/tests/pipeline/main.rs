//! The pipeline as its users see it: fake sinks that follow a script, in paused time.

mod blocking;
mod changing_sinks;
mod disk;
mod disk_law;
mod disk_log;
mod door;
mod drain;
mod fake_sink;
mod law;
mod merging;
mod merging_law;
mod neighbours;
mod receipts;
mod receiver;
mod reservation;
mod retry;
mod routing;
mod scenario;
mod signals;
mod sources;
mod stage;
