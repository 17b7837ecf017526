//! `pulsetrain convert` with trace and metric stores as inputs: real ones, and fakes that fail in every way.

mod faults;
mod few_traces;
mod jaeger;
mod prometheus;
mod proxy;
mod secure;
mod tempo;
mod world;
