//! An NVML without a GPU: the symbols of `libnvidia-ml.so.1`, answered from a scenario file.
//!
//! A program under test loads it like NVIDIA's library. Every value is a declared function of a virtual time (`function.rs`),
//! so that a test can compute the expected value independently. `scenarios/README.md` describes the scenario file; `clock.rs`
//! describes how a test sets the time. The library reads and writes these files, in its own folder or at the paths of
//! environment variables: `scenario.yaml` (`FAKE_NVML_SCENARIO`), `clock` (`FAKE_NVML_CLOCK`) and, if the scenario records
//! calls, `calls` (`FAKE_NVML_CALLS`).

// The names and the semantics are NVML's; its header documents them.
#![allow(non_snake_case, missing_docs)]
// Exported items are found by their symbol and not by their path.
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
