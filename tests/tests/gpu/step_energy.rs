//! Energy of steps, end to end on a fake driver: its counters are read as on a real GPU, and the energy of each step is known
//! exactly in advance.

mod agent;
mod import;
mod power;
mod run;
mod stage;
mod trainer;
