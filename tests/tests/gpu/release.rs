//! The driver is released automatically for a reset that the kernel would otherwise refuse.

use std::time::Duration;

use pulsetrain_gpu::{GpuConfig, GpuNotice};
use pulsetrain_tests::{FakeNvml, wait_until};

use crate::watch::{Watch, config};

/// GPU 1 needs a reset from second 1 on.
const NEEDS_RESET: &str = "readings: {recovery_action: {steps: [[0, 0], [1, 1]]}}";

fn watch(fake: &FakeNvml) -> Watch {
    Watch::start(GpuConfig {
        release_for_reset: Some(Duration::from_millis(300)),
        ..config(fake)
    })
}

fn releases(watch: &Watch) -> usize {
    let is_release = |notice: &GpuNotice| matches!(notice, GpuNotice::NoDriver(problem) if problem.what.contains("released"));
    watch.count_notices(is_release)
}

const RESET: [(&str, &str); 2] = [("gpu.index", "1"), ("gpu.recovery_action", "gpu_reset")];

fn wait_for_action(watch: &Watch, value: f64) {
    watch.wait_for("gpu.recovery_action", &RESET, |point| {
        !point.ends && point.value == value
    });
}

#[test]
fn idle_gpu_that_needs_a_reset_releases_the_driver_once() {
    let changes = format!("gpus: {{count: 2, each: {{\"1\": {{processes: [], {NEEDS_RESET}}}}}}}");
    let fake = FakeNvml::with("h100x8", &changes);
    let watch = watch(&fake);
    wait_for_action(&watch, 0.0);
    assert_eq!(releases(&watch), 0);
    fake.at(1.0);
    wait_until("the driver is released", || releases(&watch) == 1);
    let released = watch.notices();
    let [.., GpuNotice::NoDriver(problem)] = released.as_slice() else {
        panic!("{released:?}");
    };
    let why = &problem.what;
    assert!(
        why.contains("GPU 1 (GPU-") && why.contains("needs a reset"),
        "{why}"
    );
    wait_until("the driver is read again", || {
        watch.count_notices(|notice| matches!(notice, GpuNotice::Observed { gpus: 2, .. })) == 2
    });
    // The GPU was not reset, which must not cause another release.
    wait_until("the GPU needs a reset after its series ended", || {
        let points = watch.points("gpu.recovery_action", &RESET);
        let mut after_end = points.iter().skip_while(|point| !point.ends);
        after_end.any(|point| !point.ends && point.value == 1.0)
    });
    watch.wait_passes(3);
    assert_eq!(releases(&watch), 1);
}

#[test]
fn driver_is_not_released_while_the_gpu_is_in_use() {
    let process = "processes: [{pid: 51, memory_bytes: 1024, sm_percent: 40}]";
    let changes = format!("gpus: {{count: 2, each: {{\"1\": {{{process}, {NEEDS_RESET}}}}}}}");
    let fake = FakeNvml::with("h100x8", &changes);
    let watch = watch(&fake);
    wait_for_action(&watch, 0.0);
    fake.at(1.0);
    wait_for_action(&watch, 1.0);
    watch.wait_passes(3);
    assert_eq!(releases(&watch), 0);
}
