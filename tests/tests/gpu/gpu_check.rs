//! `tests/gpu-check`, which compares our values with other programs on a machine with GPUs, on a fake driver.
//!
//! The references are the driver's own library, and an `nvidia-smi` and loads that simulate the scenario without the library.

mod check;
mod lies;
mod truth;
