//! Energy of steps, end to end on a fake driver: its counters are read as they are on a GPU, and what each step took is known to
//! the joule beforehand.

mod agent;
mod import;
mod otlp;
mod power;
mod run;
mod stage;
mod trainer;
