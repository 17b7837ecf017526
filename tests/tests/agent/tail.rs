//! Following: the real binary with a writer that behaves like trainers and log rotation, and a binary that is killed.
//!
//! The output is compared with an import of the finished files: every item exactly once.

mod attempts;
mod colours;
mod every_format;
mod full_state;
mod goodput_entries;
mod kills;
mod metrics_file;
mod own_format;
mod polling;
mod positions;
mod rotation;
mod rotations;
mod surogate;
mod tensorboard;
mod trainer_state;
mod trouble;
mod tunix;
mod values;
mod world;
