//! `pulsetrain agent`: the real binary, the logs that it follows and the world that it serves.

mod archive;
mod delivery;
mod disk_queue;
mod disk_queue_kills;
mod headers;
mod kills;
mod live;
mod log;
mod operators;
mod outage;
mod outages;
mod ranks;
mod receivers;
mod reload;
mod rotation;
mod routing;
mod settings;
mod signals;
mod speed;
mod step_energy;
mod telemetry;
mod world;
