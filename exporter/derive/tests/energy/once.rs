//! Each joule is attributed once, whoever logs the steps and however their times overlap.

use pulsetrain_derive::EnergyConfig;

use crate::world::{Derived, Rank, SECOND, World, ZERO, energy, power_limit};

const ONE: Rank = Rank { rank: 1, ..ZERO };
const MILLI: u64 = SECOND / 1000;

/// Returns a world in which GPUs with these owners draw 100 W, 200 W ... and are read each second.
fn world(owners: &[Option<&Rank>], until: u64) -> World {
    let mut world = World::new(EnergyConfig::default());
    for second in 0..=until {
        for (gpu, owner) in owners.iter().enumerate() {
            let watts = 100.0 * (gpu + 1) as f64;
            world.pass(power_limit(&format!("GPU-{gpu}"), *owner, second * SECOND, watts));
            let joules = (100 * (gpu as u64 + 1) * second) as f64;
            world.pass(energy(&format!("GPU-{gpu}"), *owner, second * SECOND, joules));
        }
    }
    world.out.clear();
    world
}

fn sum(steps: &[Derived]) -> f64 {
    let energies = steps
        .iter()
        .filter(|step| step.status.as_deref() != Some("repeated"));
    energies.map(Derived::joules).sum()
}

#[test]
fn energy_of_a_step_logged_by_several_processes_goes_to_the_first() {
    let mut world = world(&[Some(&ZERO), Some(&ZERO)], 11);
    for step in 1..=10 {
        // Four processes, whose clocks and logs differ by milliseconds.
        for process in [3, 0, 5, 1] {
            let start = step * SECOND + process * MILLI;
            world.pass(ZERO.step(step as i64, start, start + SECOND - 10 * MILLI));
        }
    }
    world.finish();
    let steps = world.steps();
    assert_eq!(steps.len(), 40);
    let repeated = steps
        .iter()
        .filter(|step| step.status.as_deref() == Some("repeated"));
    assert_eq!(repeated.count(), 30, "{steps:?}");
    let (count, joules) = world.histogram("gpu.step.energy").expect("a histogram");
    assert_eq!(count, 10);
    assert!(
        (joules - 300.0 * 9.9).abs() < 1e-6,
        "{joules} J of 300 W for 9.9 s"
    );
    assert!((sum(&steps) - joules).abs() < 1e-6);
}

#[test]
fn steps_that_overlap_a_little_share_no_joule() {
    let mut world = world(&[Some(&ZERO)], 11);
    for step in 1..10 {
        let start = step * SECOND + SECOND / 4;
        world.pass(ZERO.step(step as i64, start, start + SECOND + 20 * MILLI));
    }
    world.finish();
    let steps = world.steps();
    assert!(
        steps
            .iter()
            .all(|step| step.status.as_deref() == Some("complete")),
        "{steps:?}"
    );
    let complete = 100.0 * 9.02;
    assert!(
        (sum(&steps) - complete).abs() < 1e-6,
        "{} J, not {complete} J",
        sum(&steps)
    );
}

#[test]
fn rank_that_starts_to_report_steps_gets_no_attributed_joules() {
    let mut world = world(&[Some(&ZERO), Some(&ONE)], 4);
    world.pass(ZERO.step(0, 0, SECOND));
    assert_eq!(
        world.step().joules(),
        300.0,
        "nobody else reports steps: both GPUs belong to this rank"
    );
    world.pass(ONE.step(0, 0, SECOND));
    assert_eq!(world.steps()[1].status.as_deref(), Some("repeated"));
    world.pass(ZERO.step(1, SECOND, 2 * SECOND));
    world.pass(ONE.step(1, SECOND, 2 * SECOND));
    let steps = world.steps();
    assert_eq!((steps[2].joules(), steps[3].joules()), (100.0, 200.0));
    assert_eq!(sum(&steps), 600.0, "two seconds of 300 W");
}
