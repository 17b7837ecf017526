//! `pulsetrain convert` with trace and metric stores as inputs: real ones, and fakes that fail in every way.

mod faults;
mod few_traces;
mod jaeger;
mod prometheus;
mod proxy;
mod recorded;
mod secure;
mod tempo;
mod world;
