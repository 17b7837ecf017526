//! Following: the real binary beside a writer that does what trainers and log rotation do, and a binary that is killed.
//!
//! What was followed is compared with an import of the finished files: every item once, none twice, none lost.

mod kills;
mod rotation;
mod surogate;
mod tunix;
mod world;
