//! The GPU source on a fake driver and on the files of AMD GPUs: its metrics, its faults end to end, the energy of steps, and
//! the fake driver itself.

mod amd;
mod asked_again;
mod buffers;
mod captures;
mod conventions;
mod counters;
mod energy;
mod fake_nvml;
mod faults;
mod gpu_check;
mod gpu_faults;
mod imex;
mod pcie;
mod point;
mod power;
mod power_smoothing;
mod processes;
mod release;
mod rows;
mod standard;
mod states;
mod step_energy;
mod upstream;
mod values;
mod watch;
