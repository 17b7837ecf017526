//! The exported symbols, by subject. Each gets its values from the scenario.

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
