//! Following: the real binary with a writer that does what trainers and log rotation do, and a binary that is killed.
//!
//! What was followed is compared with an import of the finished files: every item once, none twice, none lost.

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
