//! Energy and activity of steps, as the stage says them of a small world of GPUs and ranks.

mod belonging;
mod integral;
mod once;
mod waiting;
mod world;
