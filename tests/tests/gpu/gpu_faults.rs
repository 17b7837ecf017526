//! What goes wrong with GPUs, from end to end: a fake driver below, and above it what an OTLP file and a real Prometheus
//! have of it before, during and after.

mod absent;
mod amd;
mod counters;
mod driver;
mod equal;
mod gpus;
mod hang;
mod instances;
mod page;
mod point;
mod release;
mod scenarios;
mod sums;
mod world;
