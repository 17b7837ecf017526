//! An NVML without a GPU: the symbols of `libnvidia-ml.so.1`, answered from a scenario file.
//!
//! A program under test loads it as it loads NVIDIA's library. Every number is a declared function of a virtual time
//! (`function.rs`), so that a test computes what it expects by itself. `scenarios/README.md` describes the file;
//! `clock.rs` how a test, or nobody, moves the time. Next to the library, or where environment variables name them, are:
//! `scenario.yaml` (`FAKE_NVML_SCENARIO`), `clock` (`FAKE_NVML_CLOCK`) and, where asked for, `calls` (`FAKE_NVML_CALLS`).

// The names, their spelling and what they do are NVML's; its header is their documentation.
#![allow(non_snake_case, missing_docs)]
// What is exported is found by its symbol and not by its path.
#![allow(unreachable_pub)]
// Each exported call has the contract of NVML's header: a pointer is null or points to a value of its type.
#![allow(clippy::missing_safety_doc)]

mod abi;
mod call;
mod clock;
mod events;
mod function;
mod gpu;
mod handle;
mod out;
mod place;
mod scenario;
mod world;
