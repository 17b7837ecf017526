//! Sums over all GPUs and all attributes: a dashboard that sums a metric shows the total of all GPUs.

use pulsetrain_tests::{some_or_return, wait_until};

use crate::gpu_faults::world::World;

/// Eight GPUs that draw 4,000 W together, with averages, modules and memories that draw other values, and with errors of all
/// kinds.
const UNEVEN: &str = r#"gpus:
  all:
    readings:
      power.instant_mw: {sine: null, steps: [[0, 500000]]}
      power.average_mw: {sine: null, steps: [[0, 480000]]}
      power.module.instant_mw: 620000
      power.module.energy_mj: {counter: {start: 5000, rate: 620000}}
      ecc.corrected.volatile: 5
      ecc.uncorrected.volatile: 1
      ecc.corrected.volatile.dram: 3
      ecc.uncorrected.volatile.dram: 1
      ecc.corrected.volatile.sram: 2
      ecc.corrected.volatile.l2_cache: 2
      ecc.corrected.aggregate: 40
      ecc.uncorrected.aggregate: 7
      ecc.sram.aggregate.parity: 4
      ecc.sram.aggregate.secded: 2
      ecc.sram.bucket.l2: 1
      ecc.sram.bucket.sm: 3
      ecc.sram.bucket.other: 2
  each:
    "0": {readings: {power.instant_mw: {steps: [[0, 300000]]}}}
    "7": {readings: {power.instant_mw: {steps: [[0, 700000]]}, ecc.corrected.volatile: 15}}
"#;

/// Waits until Prometheus returns a value of the query within this tolerance.
fn wait_value(world: &World, query: &str, expected: f64, tolerance: f64) {
    let mut last = None;
    let is_near = |value: f64| (value - expected).abs() <= tolerance * expected;
    wait_until(&format!("{query} is {expected}"), || {
        last = world.scraped(query);
        last.is_some_and(is_near)
    });
}

#[test]
fn power_and_errors_of_eight_gpus_add_up_in_prometheus() {
    let world = some_or_return!(World::start("h100x8", UNEVEN));
    for (metric, watts) in [
        ("gpu_power_watts", 4_000.0),
        ("gpu_average_power_watts", 3_840.0),
        ("gpu_module_power_watts", 4_960.0),
        ("gpu_memory_power_watts", 560.0),
    ] {
        wait_value(&world, &format!("count({metric})"), 8.0, 0.0);
        wait_value(&world, &format!("sum({metric})"), watts, 1e-9);
    }
    wait_value(&world, "sum(gpu_energy_joules_total)", 8.0 * 123_456.0, 1e-9);
    wait_value(&world, "sum(gpu_module_energy_joules_total)", 40.0, 1e-9);
    for (metric, errors) in [
        ("gpu_ecc_errors_total", 58.0),
        ("gpu_ecc_lifetime_errors_total", 376.0),
        ("gpu_ecc_location_errors_total", 48.0),
        ("gpu_ecc_lifetime_sram_errors_total", 48.0),
    ] {
        wait_value(&world, &format!("sum({metric})"), errors, 0.0);
    }
}

#[test]
fn energy_rate_of_eight_gpus_equals_their_power() {
    let world = some_or_return!(World::start("h100x8", UNEVEN));
    world.fake.run_from(0.0);
    wait_value(&world, "sum(gpu_power_watts)", 4_000.0, 1e-9);
    // A rate is extrapolated over its window: it is exact as soon as there are scrapes from before the window.
    for age in ["30s", "1m"] {
        let count = format!("min(count_over_time(gpu_energy_joules_total[1m] offset {age}))");
        wait_until(&format!("scrapes are {age} old"), || {
            world.scraped(&count).is_some_and(|count| count >= 1.0)
        });
    }
    wait_value(&world, "sum(rate(gpu_energy_joules_total[1m]))", 4_000.0, 0.02);
    wait_value(
        &world,
        "sum(rate(gpu_module_energy_joules_total[1m]))",
        4_960.0,
        0.02,
    );
}

#[test]
fn memory_of_a_mig_gpu_is_counted_once() {
    let world = some_or_return!(World::start("mig", ""));
    let used_by_instances = 2.0 * 4_294_967_296.0 + 34_359_738_368.0;
    wait_value(&world, "sum(gpu_mig_memory_used_bytes)", used_by_instances, 0.0);
    wait_value(&world, "sum(gpu_memory_used_bytes)", 2.0 * 1_073_741_824.0, 0.0);
}
