//! The metrics of the driver's declared values, each in base units: of an H100, of a GPU with fifth-generation NVLink, and of
//! one with fans.

use pulsetrain_gpu::{GpuConfig, GpuSemconv};
use pulsetrain_tests::FakeNvml;

use crate::watch::{Watch, config, config_with, parse_series};

// Series of the first GPU, and their values at second zero.

const H100: &str = "\
gpu.utilization{gpu.task=general} 0.6
gpu.utilization{gpu.task=decoder} 0.12
gpu.utilization{gpu.task=jpeg} 0.03
gpu.utilization{gpu.task=ofa} 0.01
gpu.memory.activity 0.35
gpu.memory.limit 85520809984
gpu.memory.used 1073741824
gpu.memory.reserved 637534208
gpu.bar1.limit 137438953472
gpu.power{gpu.power.reading=instant} 500
gpu.average_power 500
gpu.memory_power{gpu.power.reading=average} 70
gpu.power_limit{gpu.power.limit_kind=enforced} 700
gpu.power_limit{gpu.power.limit_kind=min} 200
gpu.energy 123456
gpu.temperature{gpu.temperature.sensor=memory} 45
gpu.temperature_margin 52
gpu.temperature_limit{gpu.temperature.limit_kind=slowdown} 89
gpu.clock.frequency{gpu.clock.domain=memory} 2619e6
gpu.clock.limit{gpu.clock.domain=sm, gpu.clock.limit_kind=max} 1980e6
gpu.pcie.generation{gpu.link.reading=current} 5
gpu.pcie.width{gpu.link.reading=max} 16
gpu.pcie.speed{gpu.link.reading=current} 4e9
gpu.pcie.replays 2
gpu.pcie.recoveries 1
gpu.nvlink.io{gpu.io.direction=transmit, gpu.link.index=3} 102400
gpu.nvlink.io{gpu.io.direction=transmit, gpu.link.index=7} 716800
gpu.nvlink.up{gpu.link.index=17} 1
gpu.nvlink.speed{gpu.link.index=0} 26562e6
gpu.throttle.time{gpu.throttle.reason=sw_power_cap} 1
gpu.throttle.active{gpu.throttle.reason=sw_power_cap} 0
gpu.performance_state{gpu.performance_state=p0} 1
gpu.performance_state{gpu.performance_state=p8} 0
gpu.fabric_state{gpu.fabric_state=completed} 1
gpu.feature.active{gpu.feature=persistence} 1
gpu.feature.active{gpu.feature=mig} 0
gpu.recovery_action{gpu.recovery_action=none} 1
gpu.fault.active{gpu.fault=lost} 0
gpu.remapped_rows{gpu.ecc.severity=corrected} 1
gpu.row_remap.banks{gpu.row_remap.availability=max} 2559
gpu.process.memory{process.pid=4101} 42949672960
gpu.process.memory{process.pid=4102} 1073741824
gpu.info{gpu.name=NVIDIA H100 80GB HBM3, gpu.architecture=Hopper} 1
gpu.xid_errors{gpu.xid.code=79} 0
gpu.ecc.errors{gpu.ecc.severity=corrected} 0
gpu.ecc.lifetime_errors{gpu.ecc.severity=corrected} 3
gpu.ecc.lifetime_location_errors{gpu.ecc.severity=corrected, gpu.ecc.location=dram} 2
gpu.ecc.lifetime_location_errors{gpu.ecc.severity=corrected, gpu.ecc.location=sram} 1
gpu.temperature_margin_limit{gpu.temperature.limit_kind=shutdown} -5
gpu.temperature_margin_limit{gpu.temperature.limit_kind=slowdown} -2
gpu.temperature_margin_limit{gpu.temperature.limit_kind=memory_max} -8
gpu.temperature_margin_limit{gpu.temperature.limit_kind=gpu_max} 0
gpu.clock.below_limit_time{gpu.clock.limit_kind=application} 0
gpu.clock.below_limit_time{gpu.clock.limit_kind=base} 0
gpu.info{gpu.fabric.cluster_uuid=5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a, gpu.fabric.clique_id=1} 1";

const B200: &str = "\
gpu.nvlink.io{gpu.io.direction=transmit, gpu.link.index=3} 1000
gpu.nvlink.io{gpu.io.direction=receive, gpu.link.index=17} 2000
gpu.nvlink.packets{gpu.io.direction=transmit, gpu.link.index=3} 10
gpu.nvlink.packets{gpu.io.direction=receive, gpu.link.index=3} 20
gpu.nvlink.fec_blocks{gpu.nvlink.fec_bin=0, gpu.link.index=3} 1e9
gpu.nvlink.fec_blocks{gpu.nvlink.fec_bin=1, gpu.link.index=3} 400
gpu.nvlink.fec_blocks{gpu.nvlink.fec_bin=1, gpu.link.index=5} 7000
gpu.nvlink.fec_blocks{gpu.nvlink.fec_bin=15, gpu.link.index=5} 2
gpu.nvlink.bit_error_ratio{gpu.nvlink.ber_kind=effective, gpu.link.index=0} 0
gpu.nvlink.bit_error_ratio{gpu.nvlink.ber_kind=symbol, gpu.link.index=0} 3e-12
gpu.nvlink.errors{error.type=recovery_attempt, gpu.link.index=5} 3
gpu.nvlink.errors{error.type=recovery_successful, gpu.link.index=5} 2
gpu.nvlink.errors{error.type=recovery_failed, gpu.link.index=5} 1";

const FANS: &str = "\
gpu.fan.speed{gpu.fan.index=0} 30
gpu.fan.speed{gpu.fan.index=1} 8.55
gpu.fan.speed_ratio{gpu.fan.index=1} 0.3
gpu.fan.target_ratio{gpu.fan.index=0} 0.65
hw.fan.speed{hw.name=GPU 0 fan 0} 1800
hw.fan.speed{hw.name=GPU 0 fan 1} 513";

/// Two fans, as on a workstation card.
const WITH_FANS: &str = "gpus: {count: 1, all: {readings: {fan.count: 2, fan.0.percent: 60, fan.0.rpm: 1800, \
    fan.0.target_percent: 65, fan.1.percent: 30, fan.1.rpm: 513, fan.1.target_percent: 30}}}";

#[test]
fn h100_values_match_the_driver_in_base_units() {
    let fake = FakeNvml::start("h100x8");
    Watch::start(config(&fake)).expect_all(H100);
}

#[test]
fn fifth_generation_nvlinks_report_packets_bit_errors_and_recoveries() {
    let fake = FakeNvml::with("b200x8", "gpus: {count: 1}");
    let each = GpuConfig {
        each_nvlink: true,
        ..config(&fake)
    };
    Watch::start(each).expect_all(B200);
}

#[test]
fn nvlink_counters_are_read_per_link_when_the_driver_has_no_totals() {
    let (_fake, watch) = Watch::scenario("b200x8", "gpus: {count: 1, all: {readings: {nvlink.no_sums: 1}}}");
    let fifth = [("gpu.link.index", "5"), ("error.type", "recovery_attempt")];
    watch.wait_value("gpu.nvlink.errors", &fifth, 3.0);
    let last = [("gpu.link.index", "17"), ("gpu.nvlink.fec_bin", "1")];
    watch.wait_value("gpu.nvlink.fec_blocks", &last, 400.0);
}

#[test]
fn fifth_generation_nvlink_counters_are_summed_over_links_by_default() {
    let (_fake, watch) = Watch::scenario("b200x8", "gpus: {count: 1}");
    // Eighteen links. The fifth has higher values of some counters: 17 * 400 + 7000 blocks.
    let sums = "\
gpu.nvlink.io{gpu.io.direction=transmit} 18000
gpu.nvlink.packets{gpu.io.direction=receive} 360
gpu.nvlink.fec_blocks{gpu.nvlink.fec_bin=1} 13800
gpu.nvlink.errors{error.type=recovery_attempt} 3";
    watch.expect_all(sums);
    // States, speeds and bit error ratios are not summed.
    watch.wait_any("gpu.nvlink.up", &[("gpu.link.index", "17")]);
    watch.wait_any("gpu.nvlink.bit_error_ratio", &[("gpu.link.index", "17")]);
    let sent = watch.end();
    let by_link = |name: &str| {
        let of_it = sent.iter().filter(|point| point.name == name);
        of_it
            .filter(|point| point.attributes.contains_key("gpu.link.index"))
            .count()
    };
    for (name, ..) in parse_series(sums) {
        assert_eq!(by_link(name), 0, "{name}");
    }
}

#[test]
fn fan_speed_is_per_second_in_our_names_and_per_minute_in_hw_semconv() {
    let fake = FakeNvml::with("h100x8", WITH_FANS);
    Watch::start(config_with(&fake, GpuSemconv::Both)).expect_all(FANS);
}
