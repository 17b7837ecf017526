//! States that newer drivers add: an unknown state is not a fault.

use pulsetrain_gpu::{GpuConfig, GpuSemconv};
use pulsetrain_tests::FakeNvml;

use crate::watch::{Watch, config};

fn watch(fake: &FakeNvml) -> Watch {
    Watch::start(GpuConfig {
        semconv: GpuSemconv::Both,
        ..config(fake)
    })
}

/// Waits for the value of a series of a GPU.
fn value(watch: &Watch, name: &str, index: &str, label: (&str, &str)) -> f64 {
    watch
        .wait_for(name, &[("gpu.index", index), label], |_| true)
        .value
}

/// Waits for the state of a GPU in `hw.status`.
fn status(watch: &Watch, index: &str) -> String {
    let name = format!("GPU {index}");
    let of_gpu = [("hw.name", name.as_str()), ("hw.type", "gpu")];
    let holds = watch.wait_for("hw.status", &of_gpu, |point| point.value == 1.0);
    holds.attributes["hw.state"].clone()
}

#[test]
fn sleeping_nvlink_is_up_and_inactive_nvlink_is_down() {
    let fake = FakeNvml::with(
        "h100x8",
        "gpus: {count: 1, all: {readings: {nvlink.3.state: 2, nvlink.4.state: 0}}}",
    );
    let watch = watch(&fake);
    for (link, up) in [("3", 1.0), ("4", 0.0), ("5", 1.0)] {
        assert_eq!(
            value(&watch, "gpu.nvlink.up", "0", ("gpu.link.index", link)),
            up,
            "{link}"
        );
        let name = format!("GPU 0 nvlink {link}");
        let port = watch.wait_for("hw.network.up", &[("hw.name", &name)], |_| true);
        assert_eq!(port.value, up, "{name}");
    }
}

#[test]
fn recovery_action_without_a_reset_is_not_a_failed_state() {
    let fake = FakeNvml::with(
        "h100x8",
        r#"gpus: {count: 6, each: {"1": {readings: {recovery_action: 1}}, "2": {readings: {recovery_action: 5}},
            "3": {readings: {recovery_action: 99}}, "4": {readings: {recovery_action: 6}},
            "5": {readings: {recovery_action: 7}}}}"#,
    );
    let watch = watch(&fake);
    for (index, action, expected) in [
        ("0", "none", "ok"),
        ("1", "gpu_reset", "failed"),
        ("2", "recover_imex_domain", "degraded"),
        ("3", "other", "ok"),
        ("4", "bus_reset", "failed"),
        ("5", "system_reboot", "failed"),
    ] {
        let holds = value(
            &watch,
            "gpu.recovery_action",
            index,
            ("gpu.recovery_action", action),
        );
        assert_eq!(holds, 1.0, "{action}");
        assert_eq!(status(&watch, index), expected, "{action}");
    }
}

#[test]
fn a_fabric_is_degraded_by_mask_or_summary_and_unknown_without_either() {
    // Health bits: all healthy, no partition (a kind of misconfiguration), none assigned; the summary of newer drivers.
    let fake = FakeNvml::with(
        "h100x8",
        r#"gpus: {count: 6, each: {
            "1": {readings: {fabric.health_mask: 0x4aa}},
            "2": {readings: {fabric.health_mask: 0x21aa}},
            "3": {readings: {fabric.health_summary: 3}},
            "4": {readings: {fabric.health_summary: 1, fabric.state: 7}},
            "5": {readings: {fabric.health_mask: 0}}}}"#,
    );
    let watch = watch(&fake);
    for (index, degraded) in [("0", 0.0), ("1", 1.0), ("2", 1.0), ("3", 1.0), ("4", 0.0)] {
        let fault = value(
            &watch,
            "gpu.fault.active",
            index,
            ("gpu.fault", "fabric_degraded"),
        );
        assert_eq!(fault, degraded, "GPU {index}");
    }
    for (index, state) in [("0", "completed"), ("4", "other")] {
        let holds = value(&watch, "gpu.fabric_state", index, ("gpu.fabric_state", state));
        assert_eq!(holds, 1.0, "GPU {index} is {state}");
    }
    watch.wait_for("gpu.fabric_state", &[("gpu.index", "5")], |_| true);
    watch.wait_passes(2);
    let unknown = [("gpu.index", "5"), ("gpu.fault", "fabric_degraded")];
    assert!(watch.points("gpu.fault.active", &unknown).is_empty());
}

#[test]
fn pcie_lane_c2c_and_sram_errors_carry_their_type_or_location() {
    let fake = FakeNvml::with(
        "gh200",
        "gpus: {all: {readings: {pcie.lane.2.errors: 5, pcie.lane.15.errors: 2, c2c.error_interrupts: 3, ecc.sram.bucket.sm: 7}}}",
    );
    let watch = watch(&fake);
    for (name, label, errors) in [
        ("gpu.pcie.errors", ("error.type", "lane"), 7.0),
        ("gpu.c2c.errors", ("error.type", "crc"), 3.0),
        ("gpu.ecc.lifetime_sram_errors", ("gpu.ecc.location", "sm"), 7.0),
    ] {
        assert_eq!(value(&watch, name, "0", label), errors, "{name}");
    }
}

#[test]
fn nvlink_errors_are_port_errors_in_hw_semconv() {
    for (scenario, reading, kind) in [
        ("h100x8", "nvlink.5.replays: 4", "nvlink_replay"),
        (
            "b200x8",
            "nvlink.5.recoveries_failed: 4",
            "nvlink_recovery_failed",
        ),
    ] {
        let fake = FakeNvml::with(
            scenario,
            &format!("gpus: {{count: 1, all: {{readings: {{{reading}}}}}}}"),
        );
        let watch = watch(&fake);
        let port = [
            ("hw.name", "GPU 0 nvlink 5"),
            ("hw.type", "network"),
            ("error.type", kind),
        ];
        assert_eq!(
            watch.wait_for("hw.errors", &port, |_| true).value,
            4.0,
            "{scenario}"
        );
    }
}

#[test]
fn throttle_time_uses_the_reason_names_of_throttle_active() {
    let fake = FakeNvml::with(
        "h100x8",
        "gpus: {count: 1, all: {readings: {throttle.sw_thermal_ns: null, throttle.thermal_ns: 2000000000}}}",
    );
    let watch = watch(&fake);
    for (reason, seconds) in [("sw_power_cap", 1.0), ("sw_thermal_slowdown", 2.0)] {
        let reason = ("gpu.throttle.reason", reason);
        assert_eq!(
            value(&watch, "gpu.throttle.time", "0", reason),
            seconds,
            "{reason:?}"
        );
        value(&watch, "gpu.throttle.active", "0", reason);
    }
}

#[test]
fn throttle_reasons_of_newer_drivers_are_named() {
    let fake = FakeNvml::with("gb200", "gpus: {all: {readings: {clock_event_reasons: 0x604}}}");
    let watch = watch(&fake);
    for (reason, active) in [
        ("board_limit", 1.0),
        ("reliability", 1.0),
        ("sw_power_cap", 1.0),
        ("hw_slowdown", 0.0),
    ] {
        let reason = ("gpu.throttle.reason", reason);
        assert_eq!(
            value(&watch, "gpu.throttle.active", "0", reason),
            active,
            "{reason:?}"
        );
    }
}

#[test]
fn pending_settings_are_separate_from_active_ones() {
    let fake = FakeNvml::with(
        "gb200",
        "gpus: {all: {readings: {mode.ecc_pending: 0, mode.mig_pending: 1, repair.channel_pending: 1, \
         repair.unrepairable_memory: 1, remapped_rows.inactive_uncorrected: 3}}}",
    );
    let watch = watch(&fake);
    for (feature, on) in [
        ("ecc", 1.0),
        ("ecc_pending", 0.0),
        ("mig", 0.0),
        ("mig_pending", 1.0),
        ("power_smoothing", 1.0),
    ] {
        let feature = ("gpu.feature", feature);
        assert_eq!(
            value(&watch, "gpu.feature.active", "0", feature),
            on,
            "{feature:?}"
        );
    }
    for (fault, there) in [
        ("channel_repair_pending", 1.0),
        ("tpc_repair_pending", 0.0),
        ("unrepairable_memory", 1.0),
    ] {
        let fault = ("gpu.fault", fault);
        assert_eq!(value(&watch, "gpu.fault.active", "0", fault), there, "{fault:?}");
    }
    let uncorrected = ("gpu.ecc.severity", "uncorrected");
    assert_eq!(value(&watch, "gpu.inactive_remapped_rows", "0", uncorrected), 3.0);
    assert_eq!(status(&watch, "0"), "predicted_failure");
}

#[test]
fn supported_power_profiles_are_listed_with_the_active_one() {
    let fake = FakeNvml::start("gb200");
    let watch = watch(&fake);
    for (profile, active) in [("llm_training", 1.0), ("max_p", 0.0), ("other", 0.0)] {
        let profile = ("gpu.power_profile", profile);
        assert_eq!(
            value(&watch, "gpu.power_profile.active", "0", profile),
            active,
            "{profile:?}"
        );
    }
    let unsupported = [("gpu.index", "0"), ("gpu.power_profile", "sync_balanced")];
    assert!(watch.points("gpu.power_profile.active", &unsupported).is_empty());
}

#[test]
fn rack_gpu_reports_its_location_and_nvlink_remote_ends() {
    let fake = FakeNvml::with(
        "gb200",
        "gpus: {count: 1, all: {readings: {nvlink.3.remote_type: 0}}}",
    );
    let watch = watch(&fake);
    let info = watch.wait_for("gpu.info", &[("gpu.index", "0")], |_| true);
    for (attribute, value) in [
        ("gpu.nvlink.version", "5.0"),
        ("gpu.platform.chassis_serial_number", "1821225190820"),
        ("gpu.platform.slot", "16"),
        ("gpu.platform.tray", "8"),
        ("gpu.platform.host", "1"),
        ("gpu.platform.module", "2"),
    ] {
        assert_eq!(
            info.attributes.get(attribute).map(String::as_str),
            Some(value),
            "{attribute}"
        );
    }
    for (link, remote) in [("0", "switch"), ("3", "gpu"), ("17", "switch")] {
        let of = [("gpu.index", "0"), ("gpu.link.index", link)];
        let info = watch.wait_for("gpu.nvlink.info", &of, |_| true);
        assert_eq!(info.attributes["gpu.nvlink.remote_type"], remote, "link {link}");
    }
}
