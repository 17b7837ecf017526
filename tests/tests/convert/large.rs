//! Large conversions: through temporary files, in several traces, with short spans drawn together; and every way in.

mod drawn;
mod input;
mod interrupted;
mod memory;
mod parts;
mod ways_in;
