//! The energy of steps adds up to the growth of the counters, and its error is within the reported bound.

use proptest::{collection::vec, prelude::*, test_runner::Config};
use pulsetrain_derive::EnergyConfig;
use pulsetrain_otlp::write::AttributeValue;
use pulsetrain_semconv::{Attribute, AttributeKind, Stability, attribute, metric};

use crate::world::{SECOND, World, ZERO, energy, power_limit, read_energy, reading};

/// Power over time: pairs of watts and milliseconds.
#[derive(Clone, Debug)]
struct Load(Vec<(f64, u64)>);

impl Load {
    /// Returns the joules used from the start until a time.
    fn joules(&self, nanos: u64) -> f64 {
        let (mut at, mut sum) = (0, 0.0);
        for (watts, millis) in self.0.iter().cycle() {
            let end = at + millis * 1_000_000;
            sum += watts * (end.min(nanos) - at) as f64 / 1e9;
            if end >= nanos {
                return sum;
            }
            at = end;
        }
        sum
    }
}

fn loads() -> impl Strategy<Value = Load> {
    vec((50.0..700.0, 1_u64..900), 1..12).prop_map(Load)
}

/// Lengths in milliseconds, from much shorter than a tick to much longer.
fn lengths(most: usize) -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![1_u64..60, 60_u64..1500, 1500_u64..20_000], 1..most)
}

proptest! {
    #![proptest_config(Config { cases: 100, source_file: Some(file!()), ..Config::default() })]

    #[test]
    fn steps_add_up_to_the_growth_of_the_counters_and_keep_their_bounds(
        load in loads(),
        steps in lengths(40),
        ticks in vec(80_u64..2500, 1..8),
        gpus in 1_usize..4,
        late in 0_usize..5,
    ) {
        let mut world = World::new(EnergyConfig::default());
        let names: Vec<_> = (0..gpus).map(|gpu| format!("GPU-{gpu}")).collect();
        let total: u64 = steps.iter().sum::<u64>() * 1_000_000;
        // Readings from before the first step until after the last; the clock of the world begins at a second.
        let mut readings = vec![0];
        for tick in ticks.iter().cycle() {
            let last = readings[readings.len() - 1];
            readings.push(last + tick * 1_000_000);
            if last >= total {
                break;
            }
        }
        let at = |nanos: u64| SECOND + nanos;
        let (mut reading, mut start) = (readings.into_iter().peekable(), 0);
        let mut read = |world: &mut World, until: u64| {
            while let Some(time) = reading.next_if(|time| *time <= until) {
                for name in &names {
                    world.pass(read_energy(name, Some(&ZERO), at(time), 1e6 + load.joules(time)));
                }
            }
        };
        for name in &names {
            world.pass(power_limit(name, Some(&ZERO), SECOND, 700.0));
        }
        read(&mut world, 0);
        for (number, length) in (0_i64..).zip(&steps) {
            let end = start + length * 1_000_000;
            // The step's line sometimes arrives after newer readings.
            if number as usize % 5 < late {
                read(&mut world, end + SECOND);
            }
            world.pass(ZERO.step(number, at(start), at(end)));
            read(&mut world, end);
            start = end;
        }
        read(&mut world, u64::MAX);

        let derived = world.steps();
        prop_assert_eq!(derived.len(), steps.len());
        let grown = gpus as f64 * load.joules(total);
        let sum: f64 = derived.iter().map(|step| step.joules()).sum();
        prop_assert!((sum - grown).abs() <= 0.01 * grown + total_error(&load, total, gpus), "{} for {}", sum, grown);
        let mut ordered: Vec<_> = derived.iter().collect();
        ordered.sort_by(|one, other| one.number.total_cmp(&other.number));
        let mut start = 0;
        for (step, length) in ordered.iter().zip(&steps) {
            let end = start + length * 1_000_000;
            let truth = gpus as f64 * (load.joules(end) - load.joules(start));
            let error = step.get(&attribute::GPU_STEP_ENERGY_ERROR).expect("a bound");
            prop_assert!((step.joules() - truth).abs() <= error + 1e-6, "{:?} took {}", step, truth);
            let expected = if error > 0.5 * step.joules() { "coarse" } else { "complete" };
            prop_assert_eq!(step.status.as_deref(), Some(expected));
            start = end;
        }
        let (count, observed) = world.histogram("gpu.step.energy").expect("the histogram");
        prop_assert_eq!(count, derived.len() as u64);
        prop_assert!((observed - sum).abs() < 1e-6 * sum.max(1.0));
    }
}

/// Returns the error of the end of the last step, which is between two readings.
fn total_error(load: &Load, end: u64, gpus: usize) -> f64 {
    gpus as f64 * (load.joules(end + 2500 * 1_000_000) - load.joules(end))
}

#[test]
fn steps_between_the_first_and_the_last_reading_add_up_exactly() {
    let mut world = World::new(EnergyConfig::default());
    let counter = [(1, 0.0), (2, 310.0), (3, 311.0), (4, 1999.0), (5, 2700.0)];
    world.count("GPU-0", Some(&ZERO), &counter);
    let borders = [0, 17, 640, 1490, 2000, 2001, 3333, 4000].map(|millis| SECOND + millis * 1_000_000);
    for (number, pair) in (0..).zip(borders.windows(2)) {
        world.pass(ZERO.step(number, pair[0], pair[1]));
    }
    let sum: f64 = world.steps().iter().map(|step| step.joules()).sum();
    assert!((sum - 2700.0).abs() < 1e-9, "{sum}");
}

#[test]
fn step_reports_mean_and_peak_power_busy_share_and_throttle_reasons() {
    let mut world = World::new(EnergyConfig::default());
    let claim = Some(&ZERO);
    let reason = |reason| [(&attribute::GPU_THROTTLE_REASON, AttributeValue::Text(reason))];
    for (second, joules, watts, busy, capped, idle) in [
        (1, 0.0, 100.0, 0.0, 10.0, 50.0),
        (2, 400.0, 650.0, 1.0, 10.2, 50.0),
        (3, 700.0, 320.0, 0.5, 10.9, 51.0),
    ] {
        let time = second * SECOND;
        world.pass(reading("GPU-0", claim, &metric::GPU_POWER, time, watts, &[]));
        world.pass(reading("GPU-0", claim, &metric::GPU_UTILIZATION, time, busy, &[]));
        let throttle = &metric::GPU_THROTTLE_TIME;
        for (name, secs) in [("sw_power_cap", capped), ("idle", idle)] {
            world.pass(reading("GPU-0", claim, throttle, time, secs, &reason(name)));
        }
        world.pass(energy("GPU-0", claim, time, joules));
    }
    world.pass(ZERO.step(7, SECOND, 3 * SECOND));
    let step = world.step();
    assert_eq!(step.joules(), 700.0);
    let error = step.get(&attribute::GPU_STEP_ENERGY_ERROR).expect("a bound");
    assert!(error < 1e-5, "both borders are updates: {error} J");
    assert_eq!(step.get(&attribute::GPU_STEP_MEAN_POWER), Some(350.0));
    assert_eq!(step.get(&attribute::GPU_STEP_PEAK_POWER), Some(650.0));
    assert_eq!(step.get(&attribute::GPU_STEP_BUSY_RATIO), Some(0.75));
    let held = step.get(&attribute::GPU_STEP_THROTTLE_TIME).unwrap();
    assert!((held - 0.9).abs() < 1e-9, "being idle holds nothing down: {held}");
    assert_eq!(step.text(&attribute::GPU_THROTTLE_REASON), Some("sw_power_cap"));
    assert_eq!(world.gauge("gpu.step.busy_ratio"), Some(0.75));
    assert_eq!(world.histogram("gpu.step.peak_power"), Some((1, 650.0)));
    assert_eq!(world.histogram("gpu.step.mean_power"), Some((1, 350.0)));
}

#[test]
fn peak_power_of_several_gpus_is_summed_at_one_instant() {
    let mut world = World::new(EnergyConfig::default());
    world.count("GPU-0", Some(&ZERO), &[(1, 0.0), (2, 700.0), (3, 800.0)]);
    world.count("GPU-1", Some(&ZERO), &[(1, 0.0), (2, 100.0), (3, 700.0)]);
    world.pass(ZERO.step(1, SECOND, 3 * SECOND));
    let peak = world.step().get(&attribute::GPU_STEP_PEAK_POWER).expect("a peak");
    assert!((peak - 800.0).abs() < 1e-3, "{peak} W, not 700 and 600");
    assert_eq!(world.step().get(&attribute::GPU_STEP_GPUS), Some(2.0));
    assert_eq!(world.step().joules(), 1500.0);
}

#[test]
fn module_energy_and_encoder_utilization_do_not_count_for_the_gpu() {
    let mut world = World::new(EnergyConfig::default());
    for (second, joules) in [(1, 0.0), (2, 100.0)] {
        let time = second * SECOND;
        let claim = Some(&ZERO);
        world.pass(energy("GPU-0", claim, time, joules));
        let module = &metric::GPU_MODULE_ENERGY;
        world.pass(reading("GPU-0", claim, module, time, 7.0 * joules, &[]));
        let encoder = [(&attribute::GPU_TASK, AttributeValue::Text("encoder"))];
        let busy = &metric::GPU_UTILIZATION;
        world.pass(reading("GPU-0", claim, busy, time, 1.0, &encoder));
    }
    world.pass(ZERO.step(1, SECOND, 2 * SECOND));
    assert_eq!(world.step().joules(), 100.0);
    assert_eq!(world.step().get(&attribute::GPU_STEP_BUSY_RATIO), None);
}

#[test]
fn readings_from_before_the_module_had_its_own_metric_count_the_gpu_alone() {
    static SCOPE: Attribute = Attribute {
        name: "gpu.power.scope",
        brief: "",
        kind: AttributeKind::String,
        descriptive: false,
        stability: Stability::Development,
    };
    let mut world = World::new(EnergyConfig::default());
    for (time, joules) in [(SECOND, 0.0), (2 * SECOND, 100.0)] {
        for (scope, joules) in [("gpu", joules), ("module", 7.0 * joules)] {
            let (counter, scope) = (&metric::GPU_ENERGY, [(&SCOPE, AttributeValue::Text(scope))]);
            world.pass(reading("GPU-0", Some(&ZERO), counter, time, joules, &scope));
        }
    }
    world.pass(ZERO.step(1, SECOND, 2 * SECOND));
    assert_eq!(world.step().joules(), 100.0);
}

#[test]
fn counter_reset_leaves_the_step_partial() {
    let mut world = World::new(EnergyConfig::default());
    let counter = [(1, 5000.0), (2, 5300.0), (3, 40.0), (4, 240.0)];
    world.count("GPU-0", Some(&ZERO), &counter);
    world.pass(ZERO.step(1, SECOND, 4 * SECOND));
    assert_eq!(world.step().status.as_deref(), Some("partial"));
    assert_eq!(world.step().joules(), 500.0);
    let observed = world.histogram("gpu.step.energy");
    assert_eq!(observed, None, "a distribution of parts has no meaning");
    world.out.clear();
    world.pass(energy("GPU-0", Some(&ZERO), 5 * SECOND, 300.0));
    world.pass(ZERO.step(2, 4 * SECOND, 5 * SECOND));
    assert_eq!(world.step().status.as_deref(), Some("complete"));
}

#[test]
fn standard_hw_metric_names_are_accepted() {
    let mut world = World::new(EnergyConfig::default());
    for (time, joules) in [(SECOND, 0.0), (2 * SECOND, 250.0)] {
        for (id, kind, joules) in [("GPU-0", "gpu", joules), ("cpu0", "cpu", 9.0 * joules)] {
            let of_it = [
                (&attribute::HW_ID, AttributeValue::Text(id)),
                (&attribute::HW_TYPE, AttributeValue::Text(kind)),
            ];
            world.pass(reading(id, Some(&ZERO), &metric::HW_ENERGY, time, joules, &of_it));
        }
    }
    world.pass(ZERO.step(1, SECOND, 2 * SECOND));
    let step = world.step();
    assert_eq!(
        (step.joules(), step.get(&attribute::GPU_STEP_GPUS)),
        (250.0, Some(1.0))
    );
}
