//! The cost of the energy stage for the items that pass it: a pipeline with the stage against one without, in
//! one run.
//!
//! Each kind of traffic passes both pipelines in many short rounds, and the best round of each counts, so
//! that a busy machine affects both sides alike. Without the stage no batch is decoded, so the cost of the
//! stage is the difference, in nanoseconds an item.
//!
//! `cargo bench -p pulsetrain-derive --bench energy`

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench reads the clock, prints its table, and stops at what it does not expect"
)]

#[path = "../measure/round.rs"]
mod round;
mod traffic;

use std::time::Duration;

use pulsetrain_derive::{EnergyConfig, EnergyStage};
use pulsetrain_pipeline::Batch;
use tokio::runtime::Runtime;

use self::round::{round, runtime};

const ROUNDS: usize = 60;

fn main() {
    println!("$ cargo bench -p pulsetrain-derive --bench energy");
    println!(
        "one sink that only counts; best of {ROUNDS} interleaved rounds; a tick of eight GPUs before each\n"
    );
    println!(
        "{:<40} {:>12} {:>12} {:>16}",
        "items a second", "without", "with", "more ns an item"
    );
    let runtime = runtime();
    for (name, batches) in [
        ("points of training, 512 a batch", traffic::training()),
        ("points of 8 GPUs, a tick a batch", traffic::gpus()),
        ("steps of 8 ranks, with 8 spans each", traffic::steps()),
        ("the same, and a tick for each step", traffic::run()),
    ] {
        compare(&runtime, name, &batches);
    }
}

fn compare(runtime: &Runtime, name: &str, batches: &[Batch]) {
    let items: u64 = batches.iter().map(|batch| u64::from(batch.items())).sum();
    let (mut without, mut with) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        without = without.min(round(runtime, None, batches).0);
        with = with.min(round(runtime, Some(Box::new(stage())), batches).0);
    }
    let rate = |took: Duration| items as f64 / took.as_secs_f64();
    let extra = with.saturating_sub(without).as_nanos() as f64 / items as f64;
    println!(
        "{name:<40} {:>12.0} {:>12.0} {extra:>16.0}",
        rate(without),
        rate(with)
    );
}

/// Returns a stage that has seen eight GPUs.
fn stage() -> EnergyStage {
    let mut stage = EnergyStage::new(EnergyConfig::default());
    assert!(stage.load_readings(&traffic::first_tick()) > 0, "there are GPUs");
    stage
}
