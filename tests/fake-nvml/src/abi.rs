//! The exported symbols, by what they are about. Each gets its numbers from the scenario and decides nothing itself.

mod accounting;
mod board;
mod confidential;
mod ecc;
mod event_set;
mod field_values;
mod fields;
mod gpm;
mod identity;
mod memory;
mod mig;
mod nvlink;
mod pages;
mod processes;
mod samples;
mod scalars;
mod system;
mod utilization;
