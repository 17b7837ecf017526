//! States that newer drivers add: an unknown state is not a fault.

use pulsetrain_gpu::GpuSemconv;
use pulsetrain_tests::FakeNvml;

use crate::watch::{Watch, config_with};

fn watch(scenario: &str, changes: &str) -> (FakeNvml, Watch) {
    let fake = FakeNvml::with(scenario, changes);
    let watch = Watch::start(config_with(&fake, GpuSemconv::Both));
    (fake, watch)
}

/// Waits for the state of a GPU in `hw.status`.
fn status(watch: &Watch, index: &str) -> String {
    let name = format!("GPU {index}");
    let of_gpu = [("hw.name", name.as_str()), ("hw.type", "gpu")];
    let holds = watch.wait_value("hw.status", &of_gpu, 1.0);
    holds.attributes["hw.state"].clone()
}

#[test]
fn sleeping_nvlink_is_up_and_inactive_nvlink_is_down() {
    let changes = "gpus: {count: 1, all: {readings: {nvlink.3.state: 2, nvlink.4.state: 0}}}";
    let (_fake, watch) = watch("h100x8", changes);
    watch.expect_all(
        "gpu.nvlink.up{gpu.link.index=3} 1
        gpu.nvlink.up{gpu.link.index=4} 0
        gpu.nvlink.up{gpu.link.index=5} 1
        hw.network.up{hw.name=GPU 0 nvlink 3} 1
        hw.network.up{hw.name=GPU 0 nvlink 4} 0
        hw.network.up{hw.name=GPU 0 nvlink 5} 1",
    );
}

#[test]
fn recovery_action_without_a_reset_is_not_a_failed_state() {
    let (_fake, watch) = watch(
        "h100x8",
        r#"gpus: {count: 6, each: {"1": {readings: {recovery_action: 1}}, "2": {readings: {recovery_action: 5}},
            "3": {readings: {recovery_action: 99}}, "4": {readings: {recovery_action: 6}},
            "5": {readings: {recovery_action: 7}}}}"#,
    );
    for (index, action, expected) in [
        ("0", "none", "ok"),
        ("1", "gpu_reset", "failed"),
        ("2", "recover_imex_domain", "degraded"),
        ("3", "other", "ok"),
        ("4", "bus_reset", "failed"),
        ("5", "system_reboot", "failed"),
    ] {
        let of_gpu = format!("gpu.index={index}, gpu.recovery_action={action}");
        watch.expect_all(&format!("gpu.recovery_action{{{of_gpu}}} 1"));
        assert_eq!(status(&watch, index), expected, "{action}");
    }
}

#[test]
fn a_fabric_is_degraded_by_mask_or_summary_and_unknown_without_either() {
    // Health bits: all healthy, no partition (a kind of misconfiguration), none assigned; the summary of newer drivers.
    let (_fake, watch) = watch(
        "h100x8",
        r#"gpus: {count: 6, each: {
            "1": {readings: {fabric.health_mask: 0x4aa}},
            "2": {readings: {fabric.health_mask: 0x21aa}},
            "3": {readings: {fabric.health_summary: 3}},
            "4": {readings: {fabric.health_summary: 1, fabric.state: 7}},
            "5": {readings: {fabric.health_mask: 0}}}}"#,
    );
    watch.expect_all(
        "gpu.fault.active{gpu.index=0, gpu.fault=fabric_degraded} 0
        gpu.fault.active{gpu.index=1, gpu.fault=fabric_degraded} 1
        gpu.fault.active{gpu.index=2, gpu.fault=fabric_degraded} 1
        gpu.fault.active{gpu.index=3, gpu.fault=fabric_degraded} 1
        gpu.fault.active{gpu.index=4, gpu.fault=fabric_degraded} 0
        gpu.fabric_state{gpu.index=0, gpu.fabric_state=completed} 1
        gpu.fabric_state{gpu.index=4, gpu.fabric_state=other} 1",
    );
    watch.wait_any("gpu.fabric_state", &[("gpu.index", "5")]);
    watch.wait_passes(2);
    let unknown = [("gpu.index", "5"), ("gpu.fault", "fabric_degraded")];
    assert!(watch.points("gpu.fault.active", &unknown).is_empty());
}

#[test]
fn pcie_lane_c2c_and_sram_errors_carry_their_type_or_location() {
    let (_fake, watch) = watch(
        "gh200",
        "gpus: {all: {readings: {pcie.lane.2.errors: 5, pcie.lane.15.errors: 2, c2c.error_interrupts: 3, ecc.sram.bucket.sm: 7}}}",
    );
    watch.expect_all(
        "gpu.pcie.errors{error.type=lane} 7
        gpu.c2c.errors{error.type=crc} 3
        gpu.ecc.lifetime_sram_errors{gpu.ecc.location=sm} 7",
    );
}

#[test]
fn nvlink_errors_are_port_errors_in_hw_semconv() {
    for (scenario, reading, kind) in [
        ("h100x8", "nvlink.5.replays", "nvlink_replay"),
        ("b200x8", "nvlink.5.recoveries_failed", "nvlink_recovery_failed"),
    ] {
        let changes = format!("gpus: {{count: 1, all: {{readings: {{{reading}: 4}}}}}}");
        let (_fake, watch) = watch(scenario, &changes);
        let port = "hw.name=GPU 0 nvlink 5, hw.type=network";
        watch.expect_all(&format!("hw.errors{{{port}, error.type={kind}}} 4"));
    }
}

#[test]
fn throttle_time_uses_the_reason_names_of_throttle_active() {
    let changes =
        "gpus: {count: 1, all: {readings: {throttle.sw_thermal_ns: null, throttle.thermal_ns: 2000000000}}}";
    let (_fake, watch) = watch("h100x8", changes);
    for (reason, seconds) in [("sw_power_cap", 1.0), ("sw_thermal_slowdown", 2.0)] {
        watch.expect_all(&format!(
            "gpu.throttle.time{{gpu.throttle.reason={reason}}} {seconds}"
        ));
        let reason = [("gpu.index", "0"), ("gpu.throttle.reason", reason)];
        watch.wait_any("gpu.throttle.active", &reason);
    }
}

#[test]
fn throttle_reasons_of_newer_drivers_are_named() {
    let (_fake, watch) = watch("gb200", "gpus: {all: {readings: {clock_event_reasons: 0x604}}}");
    watch.expect_all(
        "gpu.throttle.active{gpu.throttle.reason=board_limit} 1
        gpu.throttle.active{gpu.throttle.reason=reliability} 1
        gpu.throttle.active{gpu.throttle.reason=sw_power_cap} 1
        gpu.throttle.active{gpu.throttle.reason=hw_slowdown} 0",
    );
}

#[test]
fn pending_settings_are_separate_from_active_ones() {
    let (_fake, watch) = watch(
        "gb200",
        "gpus: {all: {readings: {mode.ecc_pending: 0, mode.mig_pending: 1, repair.channel_pending: 1, \
         repair.unrepairable_memory: 1, remapped_rows.inactive_uncorrected: 3}}}",
    );
    watch.expect_all(
        "gpu.feature.active{gpu.feature=ecc} 1
        gpu.feature.active{gpu.feature=ecc_pending} 0
        gpu.feature.active{gpu.feature=mig} 0
        gpu.feature.active{gpu.feature=mig_pending} 1
        gpu.feature.active{gpu.feature=power_smoothing} 1
        gpu.fault.active{gpu.fault=channel_repair_pending} 1
        gpu.fault.active{gpu.fault=tpc_repair_pending} 0
        gpu.fault.active{gpu.fault=unrepairable_memory} 1
        gpu.inactive_remapped_rows{gpu.ecc.severity=uncorrected} 3",
    );
    assert_eq!(status(&watch, "0"), "predicted_failure");
}

#[test]
fn supported_power_profiles_are_listed_with_the_active_one() {
    let (_fake, watch) = watch("gb200", "");
    watch.expect_all(
        "gpu.power_profile.active{gpu.power_profile=llm_training} 1
        gpu.power_profile.active{gpu.power_profile=max_p} 0
        gpu.power_profile.active{gpu.power_profile=other} 0",
    );
    let unsupported = [("gpu.index", "0"), ("gpu.power_profile", "sync_balanced")];
    assert!(watch.points("gpu.power_profile.active", &unsupported).is_empty());
}

#[test]
fn rack_gpu_reports_its_location_and_nvlink_remote_ends() {
    let changes = "gpus: {count: 1, all: {readings: {nvlink.3.remote_type: 0}}}";
    let (_fake, watch) = watch("gb200", changes);
    watch.expect_all(
        "gpu.info{gpu.nvlink.version=5.0, gpu.platform.chassis_serial_number=1821225190820} 1
        gpu.info{gpu.platform.slot=16, gpu.platform.tray=8, gpu.platform.host=1, gpu.platform.module=2} 1
        gpu.nvlink.info{gpu.link.index=0, gpu.nvlink.remote_type=switch} 1
        gpu.nvlink.info{gpu.link.index=3, gpu.nvlink.remote_type=gpu} 1
        gpu.nvlink.info{gpu.link.index=17, gpu.nvlink.remote_type=switch} 1",
    );
}
