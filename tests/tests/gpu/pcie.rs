//! Bytes over PCI Express: the link's own counters if the GPU has them, and no plausible but wrong values.

use std::{f64::consts::TAU, time::Duration};

use pulsetrain_gpu::{GpuConfig, GpuNotice, GpuSemconv, Reason};
use pulsetrain_tests::{FakeNvml, wait_until};

use crate::watch::{Point, Watch, config, config_with};

/// 20 GB/s on average, between 10 and 30.
const MEAN: f64 = 20e9;
const AMPLITUDE: f64 = 10e9;
const PERIOD: f64 = 3.0;
const SENT: &[(&str, &str)] = &[("gpu.index", "0"), ("gpu.io.direction", "transmit")];
/// The duration of the count.
const RUN_NANOS: u64 = 5_000_000_000;

/// Starts one H100 that sends at that rate; the driver's own counters have 32 bits and another rate.
fn busy_link(changes: &str) -> FakeNvml {
    const MIB: f64 = 1_048_576.0;
    let rate = format!(
        "{{sine: {{mean: {}, amplitude: {}, period: {PERIOD}}}}}",
        MEAN / MIB,
        AMPLITUDE / MIB
    );
    let readings =
        format!("{{gpm.pcie_tx_mib_per_second: {rate}, pcie.tx_bytes: {{counter: {{rate: {MEAN}}}}}}}");
    FakeNvml::with(
        "h100x8",
        &format!("gpus: {{count: 1, all: {{readings: {readings}}}}}\n{changes}"),
    )
}

/// Returns the bytes up to a second of the scenario.
fn bytes_until(second: f64) -> f64 {
    MEAN * second + AMPLITUDE * PERIOD / TAU * (1.0 - (TAU * second / PERIOD).cos())
}

#[test]
fn pcie_bytes_at_20_gb_per_second_match_the_link() {
    let fake = busy_link("");
    fake.run_from(0.0);
    let watch = Watch::start(config_with(&fake, GpuSemconv::Both));
    let first = watch.wait_any("gpu.pcie.io", SENT);
    let last = watch.wait_for("gpu.pcie.io", SENT, |point| point.time > first.time + RUN_NANOS);
    let all = watch.points("gpu.pcie.io", SENT);
    assert_eq!(
        (all[0].value, all[0].start),
        (0.0, all[0].time),
        "it counts from its start"
    );
    let second = |point: &Point| (point.time - fake.unix_nanos(0.0)) as f64 / 1e9;
    let expected = bytes_until(second(&last)) - bytes_until(second(&all[0]));
    assert!(
        (last.value - expected).abs() < 0.01 * expected,
        "{} bytes and not {expected}",
        last.value
    );
    let standard = [("hw.name", "GPU 0"), ("network.io.direction", "transmit")];
    let twin = watch.wait_for("hw.gpu.io", &standard, |point| point.time >= last.time);
    assert!(twin.value >= last.value);
}

#[test]
fn pcie_bytes_are_not_extrapolated_while_a_profiler_holds_the_counters() {
    let fake =
        busy_link("faults: [{what: answers, error: IN_USE, from: 2, until: 3, calls: [nvmlGpmSampleGet]}]");
    fake.run_from(0.0);
    let watch = Watch::start(GpuConfig {
        retry: Duration::from_millis(200),
        ..config(&fake)
    });
    let counted = watch.wait_any("gpu.pcie.io", SENT);
    let again = watch.wait_for("gpu.pcie.io", SENT, |point| {
        !point.ends && point.start > counted.start
    });
    assert!(
        again.value <= (MEAN + AMPLITUDE) * (again.time - again.start) as f64 / 1e9 + 1.0,
        "{again:?} counts more than the link can carry"
    );
}

#[test]
fn gpu_without_performance_counters_logs_one_reason_for_missing_pcie_bytes() {
    for scenario in ["a100x8", "l40s"] {
        let fake = FakeNvml::start(scenario);
        fake.run_from(0.0);
        let watch = Watch::start(config_with(&fake, GpuSemconv::Both));
        let missing = [
            ("gpu.index", "0"),
            ("gpu.metric.name", "gpu.pcie.io"),
            ("gpu.unavailable.reason", "not_supported"),
        ];
        watch.wait_any("gpu.metric.unavailable", &missing);
        watch.wait_any("gpu.pcie.replays", &[]);
        watch.wait_passes(5);
        let has_reason = |notice: &GpuNotice| {
            let GpuNotice::Unavailable { reason, .. } = notice else {
                return false;
            };
            let (is_why, text) = (*reason == Reason::NotSupported, notice.to_string());
            is_why && text.contains("gpu.pcie.io") && text.contains("wrap several times a second")
        };
        wait_until("the reason is in the log", || watch.count_notices(has_reason) > 0);
        assert_eq!(watch.count_notices(has_reason), 1, "{:?}", watch.notices());
        let bytes = watch.end();
        let mut bytes = bytes
            .iter()
            .filter(|point| ["gpu.pcie.io", "hw.gpu.io"].contains(&point.name.as_str()));
        assert!(bytes.next().is_none(), "{scenario} has bytes that nobody counted");
    }
}
