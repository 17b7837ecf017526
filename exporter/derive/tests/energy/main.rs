//! Energy and activity of steps, as the stage derives them from a few simulated GPUs and ranks.

mod belonging;
mod integral;
mod once;
mod simulated;
mod waiting;
mod world;
