//! Unsupported calls: retried with a backoff, without a limit of attempts.

use std::time::Duration;

use pulsetrain_gpu::GpuConfig;
use pulsetrain_tests::{FakeNvml, wait_until};

use crate::watch::{INTERVAL, Watch, config};

#[test]
fn unsupported_call_is_retried_with_exponential_backoff() {
    const CALL: &str = "nvmlDeviceGetDecoderUtilization";
    let fake = FakeNvml::with(
        "h100x8",
        &format!(
            "record_calls: true\nfaults: [{{what: answers, error: NOT_SUPPORTED, calls: [{CALL}]}}]\ngpus: {{count: 1}}"
        ),
    );
    fake.run_from(0.0);
    let first = 0.2;
    let watch = Watch::start(GpuConfig {
        retry: Duration::from_secs_f64(first),
        ..config(&fake)
    });
    let mut asked = Vec::new();
    wait_until("it was asked five times", || {
        let calls = fake.calls();
        let of_it = calls.iter().filter(|call| call.name == CALL);
        asked = of_it.map(|call| call.second).collect();
        asked.len() >= 5
    });
    drop(watch);
    for (number, pair) in asked.windows(2).take(4).enumerate() {
        let least = first * f64::from(1 << number);
        // A call that is due is made at some time in the next pass.
        assert!(
            pair[1] - pair[0] > least - INTERVAL.as_secs_f64(),
            "wait {number} of {asked:?} is below {least} s"
        );
    }
}

#[test]
fn unsupported_reading_is_retried_and_appears_later() {
    let fake = FakeNvml::with(
        "h100x8",
        "faults: [{what: answers, error: NOT_SUPPORTED, until: 10, calls: [nvmlDeviceGetTemperatureV]}]\ngpus: {count: 1}",
    );
    let watch = Watch::start(GpuConfig {
        retry: Duration::from_millis(300),
        ..config(&fake)
    });
    let chip = [("gpu.temperature.sensor", "gpu")];
    watch.wait_any("gpu.temperature", &[("gpu.temperature.sensor", "memory")]);
    watch.wait_passes(3);
    assert!(watch.points("gpu.temperature", &chip).is_empty());
    let rows = &watch.inventory().gpus[0].unavailable;
    assert!(
        rows.iter()
            .any(|row| row.call == "nvmlDeviceGetTemperatureV" && row.partly)
    );
    fake.at(10.0);
    watch.wait_any("gpu.temperature", &chip);
    wait_until("it is not unavailable any more", || {
        let rows = &watch.inventory().gpus[0].unavailable;
        !rows.iter().any(|row| row.call == "nvmlDeviceGetTemperatureV")
    });
}
