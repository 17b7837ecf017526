//! GPUs whose partition changes, and processes that are not visible to the agent.

use pulsetrain_tests::some_or_return;

use crate::gpu_faults::world::World;

#[test]
fn series_of_a_destroyed_mig_instance_end_and_those_of_a_new_one_start() {
    let world = some_or_return!(World::start("mig_reshape", ""));
    let of = |instance| {
        [
            ("gpu.id", "GPU-5fae0c00-1f2e-4d3c-8b4a-000000000000"),
            ("gpu.mig.instance_id", instance),
        ]
    };
    world.wait_value("gpu.mig.memory.used", &of("1"), 4_294_967_296.0);
    world.wait_value("gpu.mig.memory.used", &of("2"), 34_359_738_368.0);
    world.fake.at(10.0);
    world.wait_ended("gpu.mig.memory.used", &of("1"));
    world.wait_value("gpu.mig.memory.used", &of("2"), 34_359_738_368.0);
    // The performance counters need time to advance.
    world.fake.run_from(20.0);
    world.wait_value("gpu.mig.memory.used", &of("3"), 1_073_741_824.0);
    world.wait_both("gpu.sm.active", &of("3"), |value| (value - 0.3).abs() < 1e-9);
    world.wait_both("gpu.sm.active", &of("2"), |value| (value - 0.9).abs() < 1e-9);
}

#[test]
fn processes_of_another_namespace_are_reported_as_they_start_and_stop() {
    let world = some_or_return!(World::start("unseen_processes", "gpus: {count: 1}"));
    let of = |pid| [("gpu.index", "0"), ("process.pid", pid)];
    world.wait_value("gpu.process.memory", &of("4100001"), 42_949_672_960.0);
    world.fake.at(12.0);
    world.wait_value("gpu.process.memory", &of("4100003"), 2_147_483_648.0);
    world.fake.at(21.0);
    world.wait_ended("gpu.process.memory", &of("4100001"));
    world.wait_value("gpu.process.memory", &of("4100003"), 2_147_483_648.0);
    assert!(
        world.points("gpu.process.memory", &of("4100002")).is_empty(),
        "what is unknown is not zero"
    );
}
