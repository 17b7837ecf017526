//! The GPU source on a fake driver, and on the files of AMD GPUs: every row of its table, counters, states, names, and what it costs the driver.

mod amd;
mod asked_again;
mod buffers;
mod captures;
mod conventions;
mod counters;
mod energy;
mod faults;
mod pcie;
mod power;
mod processes;
mod release;
mod rows;
mod standard;
mod states;
mod upstream;
mod values;
mod watch;
