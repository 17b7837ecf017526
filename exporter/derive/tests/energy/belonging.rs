//! The GPUs of a step's energy: those of its rank, its run, its host, or unclaimed ones.

use std::time::Duration;

use pulsetrain_derive::EnergyConfig;
use pulsetrain_otlp::write::AttributeValue;
use pulsetrain_semconv::{attribute, metric};

use crate::world::{Derived, Rank, SECOND, World, ZERO, energy, power_limit, reading};

const ONE: Rank = Rank { rank: 1, ..ZERO };
const OTHER: Rank = Rank { run: "other", ..ZERO };

/// Returns a world in which GPUs used 100 J, 200 J, 400 J ... between 1 s and 2 s.
fn world(owners: &[Option<&Rank>]) -> World {
    let mut world = World::new(EnergyConfig::default());
    for (gpu, owner) in owners.iter().enumerate() {
        let counter = [(1, 5.0), (2, 5.0 + f64::from(100 << gpu))];
        world.count(&format!("GPU-{gpu}"), *owner, &counter);
    }
    world.out.clear();
    world
}

/// Returns the energy of a rank's step between the two readings.
fn step(world: &mut World, rank: &Rank) -> Derived {
    world.out.clear();
    world.pass(rank.step(1, SECOND, 2 * SECOND));
    world.step()
}

fn attribution(step: &Derived) -> (&str, f64) {
    let found = step
        .text(&attribute::GPU_STEP_ATTRIBUTION)
        .expect("an attribution");
    (found, step.joules())
}

#[test]
fn each_rank_has_its_own_gpus() {
    let mut world = world(&[Some(&ZERO), Some(&ONE), Some(&ONE)]);
    world.pass(ONE.step(0, 0, SECOND / 2));
    assert_eq!(attribution(&step(&mut world, &ZERO)), ("rank", 100.0));
    assert_eq!(attribution(&step(&mut world, &ONE)), ("rank", 600.0));
}

#[test]
fn gpus_of_ranks_without_steps_count_for_the_lowest_rank_with_steps() {
    let mut world = world(&[Some(&ZERO), Some(&ONE)]);
    assert_eq!(attribution(&step(&mut world, &ZERO)), ("run", 300.0));
}

#[test]
fn unclaimed_gpus_count_for_the_only_run_of_the_host() {
    let mut world = world(&[None, None]);
    assert_eq!(attribution(&step(&mut world, &ZERO)), ("host", 300.0));
    assert_eq!(step(&mut world, &OTHER).status, None, "now there are two runs");
}

#[test]
fn gpus_of_another_run_are_not_attributed() {
    let mut world = world(&[Some(&OTHER)]);
    assert_eq!(step(&mut world, &ZERO).status, None);
    assert_eq!(attribution(&step(&mut world, &OTHER)), ("rank", 100.0));
}

#[test]
fn log_without_a_host_name_finds_the_gpus_of_its_run() {
    let mut world = world(&[Some(&ZERO)]);
    let nowhere = Rank { host: "", ..ZERO };
    assert_eq!(attribution(&step(&mut world, &nowhere)), ("rank", 100.0));
}

#[test]
fn gpu_shared_by_two_runs_has_power_but_no_joules() {
    let mut world = world(&[Some(&ZERO)]);
    for (time, bytes) in [(SECOND, 7.0), (2 * SECOND, 8.0)] {
        let memory = &metric::GPU_PROCESS_MEMORY;
        world.pass(reading("GPU-0", Some(&OTHER), memory, time, bytes, &[]));
    }
    for rank in [&ZERO, &OTHER] {
        let step = step(&mut world, rank);
        assert_eq!(step.status.as_deref(), Some("shared"), "{rank:?}");
        assert_eq!(step.get(&attribute::GPU_STEP_ENERGY), None);
        assert_eq!(step.get(&attribute::GPU_STEP_MEAN_POWER), Some(100.0));
    }
    assert_eq!(world.histogram("gpu.step.energy"), None);
}

#[test]
fn gpu_claimed_by_two_runs_is_shared_until_the_next_process_poll() {
    let mut world = World::new(EnergyConfig::default());
    let memory = &metric::GPU_PROCESS_MEMORY;
    for rank in [&ZERO, &OTHER] {
        world.pass(reading("GPU-0", Some(rank), memory, SECOND, 7.0, &[]));
    }
    world.draw_100_watts(None, 1..=5);
    world.pass(ZERO.step(1, 3 * SECOND, 4 * SECOND));
    assert_eq!(world.step().status.as_deref(), Some("shared"));
    // The other has ended at the next poll.
    world.pass(reading("GPU-0", Some(&ZERO), memory, 6 * SECOND, 7.0, &[]));
    world.draw_100_watts(Some(&ZERO), 6..=9);
    world.out.clear();
    world.pass(ZERO.step(2, 7 * SECOND, 8 * SECOND));
    assert_eq!(attribution(&world.step()), ("rank", 100.0));
}

#[test]
fn consecutive_runs_share_no_energy() {
    let mut world = World::new(EnergyConfig::default());
    world.draw_100_watts(Some(&ZERO), 1..=3);
    world.draw_100_watts(Some(&OTHER), 4..=6);
    world.pass(OTHER.step(1, 9 * SECOND / 2, 11 * SECOND / 2));
    assert_eq!(attribution(&world.step()), ("rank", 100.0));
    world.out.clear();
    world.pass(ZERO.step(1, 3 * SECOND / 2, 5 * SECOND / 2));
    assert_eq!(attribution(&world.step()), ("rank", 100.0));
}

#[test]
fn joules_per_token_are_sent_after_all_ranks_reported_the_step() {
    let mut world = world(&[Some(&ZERO), Some(&ONE)]);
    let sized = |rank: &Rank| Rank {
        world_size: Some(2),
        ..rank.clone()
    };
    let tokens = [(&attribute::TRAIN_TOKENS, AttributeValue::Int(1000))];
    world.pass(sized(&ZERO).step(0, 0, SECOND / 2));
    world.pass(sized(&ONE).step(1, SECOND, 2 * SECOND));
    assert_eq!(world.gauge("perf.energy_per_token"), None);
    world.pass(sized(&ZERO).step_with(1, SECOND, 2 * SECOND, &tokens));
    assert_eq!(world.gauge("perf.energy_per_token"), Some(0.3));
}

#[test]
fn steps_of_points_are_derived_without_spans() {
    let mut world = World::new(EnergyConfig::default());
    world.pass(power_limit("GPU-0", Some(&ZERO), SECOND, 100.0));
    world.draw_100_watts(Some(&ZERO), 1..=2);
    world.pass(ZERO.durations(1, 1.0, 2 * SECOND));
    world.draw_100_watts(Some(&ZERO), 3..=3);
    world.pass(ZERO.durations(2, 2.0, 3 * SECOND));
    let derived = |world: &World| world.histogram("gpu.step.energy");
    assert_eq!(derived(&world), None, "spans may come");
    world.wait(Duration::from_secs(5));
    assert_eq!(derived(&world), Some((2, 200.0)));
    world.draw_100_watts(Some(&ZERO), 4..=4);
    world.pass(ZERO.durations(3, 2.5, 7 * SECOND / 2));
    assert_eq!(derived(&world), Some((3, 250.0)), "no span will come any more");
    world.pass(ZERO.durations(9, 8.5, 4 * SECOND));
    let unknown = "of six steps at once nobody knows where they were";
    assert_eq!(derived(&world), Some((3, 250.0)), "{unknown}");
}

#[test]
fn steps_of_points_and_spans_are_counted_once() {
    let mut world = world(&[Some(&ZERO)]);
    world.pass(ZERO.durations(1, 1.0, 2 * SECOND));
    world.pass(ZERO.step(1, SECOND, 2 * SECOND));
    world.wait(Duration::from_secs(60));
    world.pass(ZERO.durations(2, 1.5, 2 * SECOND));
    world.finish();
    assert_eq!(world.histogram("gpu.step.energy"), Some((1, 100.0)));
}

#[test]
fn step_waits_for_a_reading_that_claims_its_gpu() {
    let mut world = World::new(EnergyConfig::default());
    world.pass(energy("GPU-0", Some(&ZERO), SECOND, 0.0));
    let other = Rank { run: "other", ..ZERO };
    world.pass(other.step(1, SECOND, SECOND));
    world.pass(ZERO.step(7, 20 * SECOND, 21 * SECOND));
    world.out.clear();
    world.pass(energy("GPU-0", None, 30 * SECOND, 2900.0));
    assert_eq!(world.steps().len(), 0, "whose it is comes with the next reading");
    world.pass(energy("GPU-0", Some(&ZERO), 31 * SECOND, 3000.0));
    assert_eq!(world.step().joules(), 100.0);
}
