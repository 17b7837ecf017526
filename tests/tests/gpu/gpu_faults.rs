//! Faults of GPUs, end to end: a fake driver as the source, and the results in an OTLP file and in a real Prometheus before,
//! during and after the fault.

mod absent;
mod amd;
mod counters;
mod driver;
mod equal;
mod gpus;
mod hang;
mod instances;
mod page;
mod release;
mod scenarios;
mod sums;
mod world;
