//! Tests of the pipeline through its public interface: fake sinks that follow a script, in paused time.

mod acks;
mod blocking;
mod changing_sinks;
mod disk;
mod disk_damage;
mod disk_law;
mod disk_log;
mod drain;
mod fake_sink;
mod held;
mod ingress;
mod law;
mod merging;
mod merging_law;
mod neighbours;
mod receiver;
mod refusing;
mod reservation;
mod retry;
mod routing;
mod scenario;
mod signals;
mod sources;
mod stage;
