//! `pulsetrain convert` straight from the stores: real ones, and fakes that fail in every way.

mod faults;
mod few_traces;
mod jaeger;
mod prometheus;
mod secure;
mod tempo;
mod world;
