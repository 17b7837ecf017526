//! `tests/gpu-check`, the program that compares us with other programs on a machine with GPUs, on a fake driver.
//!
//! The references are the driver's own library, and an `nvidia-smi` and loads that answer from the scenario without it.

mod check;
mod lies;
mod truth;
