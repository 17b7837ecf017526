//! The standard names: GPU metrics sent as OpenTelemetry's `hw.*`, instead of ours or in addition to them.

use pulsetrain_gpu::GpuSemconv;
use pulsetrain_tests::FakeNvml;

use crate::watch::{Watch, config_with, parse_series};

const FIRST: [(&str, &str); 1] = [("gpu.index", "0")];

#[test]
fn application_xid_errors_are_not_gpu_errors_in_hw_semconv() {
    // A memory page fault of a program, a change of the recovery action, and a double-bit error.
    let events = "events: [{at: 5, gpu: 0, data: 31}, {at: 5, gpu: 0, data: 154}, {at: 6, gpu: 0, data: 48}]";
    let fake = FakeNvml::with("h100x8", &format!("gpus: {{count: 1}}\n{events}"));
    let watch = Watch::start(config_with(&fake, GpuSemconv::Both));
    watch.wait_value("gpu.xid_errors", &[("gpu.xid.code", "48")], 0.0);
    fake.at(7.0);
    watch.wait_value("hw.errors", &[("error.type", "xid_48")], 1.0);
    for code in ["31", "154"] {
        watch.wait_value("gpu.xid_errors", &[("gpu.xid.code", code)], 1.0);
        let kind = format!("xid_{code}");
        assert!(
            watch.points("hw.errors", &[("error.type", &kind)]).is_empty(),
            "{kind}"
        );
    }
}

#[test]
fn hw_semconv_names_replace_or_extend_our_names() {
    let fake = FakeNvml::start("h100x8");
    fake.run_from(0.0);
    let watch = |semconv| Watch::start(config_with(&fake, semconv));
    let standard = watch(GpuSemconv::Hw);
    // The first point of a series: its value is the one that the scenario begins with.
    let of = |name: &str, attributes: &[(&str, &str)]| {
        standard.wait_any(name, attributes);
        standard.points(name, attributes).remove(0)
    };
    let id = ("hw.id", "GPU-5fae0c00-1f2e-4d3c-8b4a-000000000000");
    let busy = of("hw.gpu.utilization", &[id, ("hw.gpu.task", "general")]).value;
    assert!((0.6..=1.0).contains(&busy));
    for (name, mut attributes, value) in parse_series(
        "hw.gpu.memory.limit{hw.vendor=NVIDIA} 85520809984
        hw.temperature.limit{hw.limit_type=high.critical} 92
        hw.status{hw.state=ok, hw.type=gpu} 1
        hw.status{hw.state=failed} 0
        hw.errors{error.type=xid_79} 0
        hw.errors{error.type=corrected} 0",
    ) {
        attributes.push(id);
        assert_eq!(of(name, &attributes).value, value, "{name} {attributes:?}");
    }
    let share = of("hw.gpu.memory.utilization", &[id]).value;
    let used = of("hw.gpu.memory.usage", &[id]).value;
    assert!((share - used / 85_520_809_984.0).abs() < 1e-9);
    let at_least = |name: &str, attributes: &[(&str, &str)], least: f64| {
        let value = of(name, attributes).value;
        assert!(value >= least, "{name} is {value}");
    };
    at_least("hw.gpu.io", &[id, ("network.io.direction", "receive")], 0.0);
    at_least("hw.power", &[id, ("hw.type", "gpu")], 500.0);
    at_least("hw.energy", &[id, ("hw.type", "gpu")], 123_456.0);
    at_least("hw.temperature", &[id, ("hw.sensor_location", "memory")], 45.0);
    let port = [("hw.parent", id.1), ("hw.name", "GPU 0 nvlink 5")];
    assert_eq!(of("hw.network.up", &port).value, 1.0);
    standard.wait_any("gpu.sm.active", &FIRST);
    let standard = standard.end();
    for name in ["gpu.power", "gpu.energy", "gpu.memory.used", "gpu.utilization"] {
        let replaced = standard.iter().any(|point| point.name == name);
        assert!(!replaced, "{name} has a standard name");
    }
    let both = watch(GpuSemconv::Both);
    both.wait_any("gpu.power", &FIRST);
    both.wait_any("hw.power", &[id]);
    let ours = watch(GpuSemconv::Gpu);
    ours.wait_any("gpu.sm.active", &FIRST);
    ours.wait_any("gpu.throttle.time", &FIRST);
    assert!(!ours.end().iter().any(|point| point.name.starts_with("hw.")));
}
