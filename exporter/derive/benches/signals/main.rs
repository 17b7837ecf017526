//! The cost of derived signals for the items that pass: a pipeline with the stage against one without, in one
//! run.
//!
//! Each kind of traffic passes both pipelines in many short rounds, and the best round of each counts, so
//! that a busy machine affects both sides alike. Without the stage no batch is decoded, so the cost of the
//! stage is the difference, in nanoseconds an item and a step.
//!
//! `cargo bench -p pulsetrain-derive --bench signals`

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

use pulsetrain_derive::{SignalsConfig, SignalsStage};
use tokio::runtime::Runtime;

use self::{
    round::{round, runtime},
    traffic::Traffic,
};

const ROUNDS: usize = 30;

fn main() {
    println!("$ cargo bench -p pulsetrain-derive --bench signals");
    println!("one sink that only counts; best of {ROUNDS} interleaved rounds\n");
    println!(
        "{:<44} {:>12} {:>12} {:>10} {:>10} {:>9}",
        "items a second", "without", "with", "ns an item", "ns a step", "derived"
    );
    let runtime = runtime();
    for traffic in [
        traffic::layers(),
        traffic::steps("steps of 8 ranks: 9 points, 5 spans, live", 8, 1),
        traffic::steps("the same, 100 steps a batch", 8, 100),
        traffic::steps("steps of 64 ranks, live", 64, 1),
    ] {
        compare(&runtime, &traffic);
    }
}

fn compare(runtime: &Runtime, traffic: &Traffic) {
    let (mut without, mut with) = (Duration::MAX, Duration::MAX);
    let mut derived = 0;
    for _ in 0..ROUNDS {
        without = without.min(round(runtime, None, &traffic.batches).0);
        let stage = SignalsStage::new(SignalsConfig::default());
        let (took, delivered) = round(runtime, Some(Box::new(stage)), &traffic.batches);
        with = with.min(took);
        derived = delivered - traffic.items();
    }
    let rate = |took: Duration| traffic.items() as f64 / took.as_secs_f64();
    let extra = with.saturating_sub(without).as_nanos() as f64;
    let per_step = match traffic.steps {
        0 => "-".to_owned(),
        steps => format!("{:.0}", extra / steps as f64),
    };
    println!(
        "{:<44} {:>12.0} {:>12.0} {:>10.0} {per_step:>10} {derived:>9}",
        traffic.name,
        rate(without),
        rate(with),
        extra / traffic.items() as f64,
    );
}
