//! GPUs that are lost, added and removed.

use pulsetrain_tests::some_or_return;

use crate::gpu_faults::world::World;

#[test]
fn lost_gpu_reports_a_fault_and_xid_ends_its_series_and_recovers() {
    let world = some_or_return!(World::start("gpu_lost", "gpus: {count: 4}"));
    let lost = [("gpu.index", "3"), ("gpu.fault", "lost")];
    let heat = |index| [("gpu.index", index), ("gpu.temperature.sensor", "memory")];
    let xid = [("gpu.index", "3"), ("gpu.xid.code", "79")];
    world.wait_value("gpu.fault.active", &lost, 0.0);
    world.wait_value("gpu.xid_errors", &xid, 0.0);
    world.wait_value("gpu.temperature", &heat("3"), 45.0);
    world.fake.at(12.0);
    world.wait_value("gpu.fault.active", &lost, 1.0);
    world.wait_value("gpu.xid_errors", &xid, 1.0);
    world.wait_ended("gpu.temperature", &heat("3"));
    world.wait_value("gpu.temperature", &heat("2"), 52.0);
    assert_eq!(
        world.points("gpu.xid", &xid).len(),
        1,
        "the error is an event, once"
    );
    world.fake.at(60.0);
    world.wait_value("gpu.fault.active", &lost, 0.0);
    world.wait_value("gpu.temperature", &heat("3"), 80.0);
    world.wait_for_log("no longer answers");
    world.wait_for_log("answers again");
}

#[test]
fn added_gpu_is_reported_and_series_of_a_removed_gpu_end() {
    let world = some_or_return!(World::start("hot_plug", ""));
    let used = |uuid| [("gpu.id", uuid)];
    let (second, eighth) = (
        "GPU-5fae0c00-1f2e-4d3c-8b4a-000000000001",
        "GPU-5fae0c00-1f2e-4d3c-8b4a-000000000007",
    );
    world.wait_both("gpu.memory.used", &used(second), |_| true);
    assert!(world.points("gpu.memory.used", &used(eighth)).is_empty());
    world.fake.at(10.0);
    world.wait_both("gpu.memory.used", &used(eighth), |_| true);
    world.fake.at(20.0);
    world.wait_ended("gpu.memory.used", &used(second));
    // The index of the eighth GPU has changed: it is the same GPU with another index.
    world.wait_both("gpu.memory.used", &[used(eighth)[0], ("gpu.index", "6")], |_| {
        true
    });
}
