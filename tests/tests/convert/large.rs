//! Large conversions: through temporary files, into several traces, with merged short spans, and with every kind of input.

mod drawn;
mod input;
mod interrupted;
mod memory;
mod parts;
mod ways_in;
