//! The GPU source on a fake driver: every row of its table, counters, states, names, and what it costs the driver.

mod counters;
mod faults;
mod rows;
mod standard;
mod values;
mod watch;
