//! `pulsetrain agent`: the real binary, the logs that it follows and the world that it serves.

mod archive;
mod delivery;
mod headers;
mod kills;
mod live;
mod operators;
mod outage;
mod ranks;
mod receivers;
mod reload;
mod signals;
mod step_energy;
mod telemetry;
mod world;
