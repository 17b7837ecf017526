//! The telemetry of other exporters, line by line, with the metrics that cover it: every line has an answer, and every metric of
//! an answer is one that the source can send.

use std::fmt::Write;

/// The lines of the other exporters.
const UNION: &str = include_str!("union.txt");

/// The answer to a line.
enum Answer {
    /// The metrics that cover it.
    Given(&'static [&'static str]),
    /// The reason that no metric covers it.
    Absent(&'static str),
}

use Answer::{Absent, Given};

const ANSWERS: &[(&str, Answer)] = &[
    ("GPU busy", Given(&["gpu.utilization"])),
    ("memory controller activity", Given(&["gpu.memory.activity"])),
    ("graphics engine active", Given(&["gpu.graphics.active"])),
    ("SM active", Given(&["gpu.sm.active"])),
    ("SM occupancy", Given(&["gpu.sm.occupancy"])),
    (
        "tensor pipe, any and HMMA, IMMA, DFMA, DMMA",
        Given(&["gpu.pipe.utilization"]),
    ),
    (
        "FP16, FP32, FP64 and integer pipes",
        Given(&["gpu.pipe.utilization"]),
    ),
    (
        "DRAM bandwidth active",
        Given(&["gpu.memory.bandwidth_utilization"]),
    ),
    (
        "encoder, decoder, JPEG and OFA utilization",
        Given(&["gpu.utilization"]),
    ),
    (
        "NVDEC 0-7, NVJPG 0-7, NVOFA 0-1",
        Given(&["gpu.engine.utilization"]),
    ),
    (
        "framebuffer used, free, reserved, total",
        Given(&[
            "gpu.memory.used",
            "gpu.memory.free",
            "gpu.memory.reserved",
            "gpu.memory.limit",
        ]),
    ),
    ("BAR1", Given(&["gpu.bar1.used", "gpu.bar1.limit"])),
    (
        "protected memory",
        Given(&["gpu.protected_memory.used", "gpu.protected_memory.limit"]),
    ),
    ("power, instant", Given(&["gpu.power"])),
    (
        "power, mean of a second",
        Given(&["gpu.average_power", "gpu.power"]),
    ),
    (
        "power of the memory and of the module",
        Given(&["gpu.memory_power", "gpu.module_power"]),
    ),
    (
        "power limits: enforced, requested, default, lowest, highest",
        Given(&["gpu.power_limit"]),
    ),
    (
        "energy since the driver was loaded",
        Given(&["gpu.energy", "gpu.module_energy"]),
    ),
    (
        "power samples with their times",
        Given(&["gpu.power_distribution"]),
    ),
    (
        "utilization samples with their times",
        Given(&["gpu.utilization_distribution"]),
    ),
    ("temperature of GPU and memory", Given(&["gpu.temperature"])),
    ("T.Limit margin", Given(&["gpu.temperature_margin"])),
    ("T.Limit thresholds", Given(&["gpu.temperature_margin_limit"])),
    ("temperature thresholds", Given(&["gpu.temperature_limit"])),
    ("fan speed, %", Given(&["gpu.fan.speed_ratio"])),
    ("fan speed, rpm", Given(&["gpu.fan.speed"])),
    ("target fan speed", Given(&["gpu.fan.target_ratio"])),
    (
        "clocks: graphics, SM, memory, video",
        Given(&["gpu.clock.frequency"]),
    ),
    ("clocks: highest", Given(&["gpu.clock.limit"])),
    (
        "clocks: for applications, and their default",
        Given(&["gpu.clock.limit"]),
    ),
    ("clocks: highest allowed", Given(&["gpu.clock.limit"])),
    ("performance state", Given(&["gpu.performance_state"])),
    (
        "persistence, ECC, MIG and GSP mode",
        Given(&["gpu.feature.active"]),
    ),
    ("compute mode", Given(&["gpu.compute_mode"])),
    ("clock event reasons", Given(&["gpu.throttle.active"])),
    ("throttle duration by reason", Given(&["gpu.throttle.time"])),
    (
        "time below application and base clocks",
        Given(&["gpu.clock.below_limit_time"]),
    ),
    (
        "violation status",
        Absent(
            "the same counters as `gpu.throttle.time`, with one call per reason; one call reads all fields",
        ),
    ),
    (
        "PCIe bytes, counted",
        Absent(
            "the counters have 32 bits and wrap several times a second; `gpu.pcie.io` is the integral of the performance counters",
        ),
    ),
    (
        "PCIe bytes a second, from performance counters",
        Given(&["gpu.pcie.throughput", "gpu.pcie.io"]),
    ),
    (
        "PCIe bytes a second, measured for 20 ms",
        Absent(
            "the call sleeps for 20 ms per direction, in every pass; GPUs before Hopper have `gpu.metric.unavailable`",
        ),
    ),
    (
        "PCIe link generation, width, speed",
        Given(&["gpu.pcie.generation", "gpu.pcie.width", "gpu.pcie.speed"]),
    ),
    ("PCIe replays", Given(&["gpu.pcie.replays"])),
    ("PCIe errors (AER)", Given(&["gpu.pcie.errors"])),
    ("NVLink bytes, counted", Given(&["gpu.nvlink.io"])),
    (
        "NVLink bytes a second, from performance counters",
        Given(&["gpu.nvlink.throughput"]),
    ),
    (
        "NVLink bytes, counted by the deprecated call",
        Absent(
            "the fields of `gpu.nvlink.io` replace the call, and its unit depends on the program that configured it last",
        ),
    ),
    ("NVLink packets", Given(&["gpu.nvlink.packets"])),
    (
        "NVLink errors: CRC, replay, recovery, of packets",
        Given(&["gpu.nvlink.errors"]),
    ),
    ("NVLink state", Given(&["gpu.nvlink.up"])),
    ("NVLink speed", Given(&["gpu.nvlink.speed"])),
    ("NVLink bit error ratios", Given(&["gpu.nvlink.bit_error_ratio"])),
    (
        "NVLink bit error ratios before correction",
        Absent("NVML marks these fields as deprecated"),
    ),
    ("NVLink FEC history", Given(&["gpu.nvlink.fec_blocks"])),
    (
        "C2C links: status, bandwidth, errors",
        Given(&["gpu.c2c.up", "gpu.c2c.speed", "gpu.c2c.errors"]),
    ),
    (
        "C2C bytes a second, from performance counters",
        Given(&["gpu.c2c.throughput"]),
    ),
    (
        "IMEX: states of the domain and the daemon",
        Given(&["gpu.imex.domain_state", "gpu.imex.daemon_state"]),
    ),
    (
        "ECC errors, corrected and not, volatile and aggregate, by location",
        Given(&[
            "gpu.ecc.errors",
            "gpu.ecc.lifetime_errors",
            "gpu.ecc.location_errors",
            "gpu.ecc.lifetime_location_errors",
        ]),
    ),
    (
        "SRAM errors and their threshold",
        Given(&["gpu.ecc.lifetime_sram_errors", "gpu.fault.active"]),
    ),
    (
        "retired pages, and whether one is pending",
        Given(&["gpu.retired_pages", "gpu.fault.active"]),
    ),
    (
        "remapped rows, pending and failed remaps",
        Given(&["gpu.remapped_rows", "gpu.fault.active"]),
    ),
    ("row remap availability", Given(&["gpu.row_remap.banks"])),
    ("XID errors, counted", Given(&["gpu.xid_errors"])),
    ("XID errors, as events", Given(&["gpu.xid"])),
    (
        "XID of the last error, as a gauge",
        Absent("it does not show a repeated error; the counter by code and the events have each error"),
    ),
    ("pending ECC and MIG modes", Given(&["gpu.feature.active"])),
    (
        "pending repairs, unrepairable memory",
        Given(&["gpu.fault.active"]),
    ),
    (
        "row remaps that wait for a reset",
        Given(&["gpu.inactive_remapped_rows"]),
    ),
    ("PCIe link recoveries", Given(&["gpu.pcie.recoveries"])),
    ("EDPp multiplier", Given(&["gpu.edpp_ratio"])),
    (
        "power smoothing",
        Given(&[
            "gpu.feature.active",
            "gpu.power_smoothing.activation_offset",
            "gpu.power_smoothing.active_profile",
            "gpu.power_smoothing.floor_limit",
            "gpu.power_smoothing.floor_ratio",
            "gpu.power_smoothing.lifetime_remaining",
            "gpu.power_smoothing.power",
            "gpu.power_smoothing.preset_profiles",
            "gpu.power_smoothing.privilege_level",
            "gpu.power_smoothing.ramp_down_hysteresis",
            "gpu.power_smoothing.ramp_rate",
            "gpu.power_smoothing.secondary_floor",
            "gpu.power_smoothing.window_unit",
            "gpu.power_smoothing.windows",
        ]),
    ),
    ("workload power profiles", Given(&["gpu.power_profile.active"])),
    (
        "NVLink version and remote end",
        Given(&["gpu.info", "gpu.nvlink.info"]),
    ),
    ("place in the rack", Given(&["gpu.info"])),
    ("events other than XID errors", Given(&["gpu.driver_events"])),
    ("latency of the driver", Given(&["gpu.driver.latency"])),
    ("recovery action", Given(&["gpu.recovery_action"])),
    (
        "fabric state and health",
        Given(&["gpu.fabric_state", "gpu.fault.active"]),
    ),
    ("fabric cluster and clique", Given(&["gpu.info"])),
    (
        "health as assessed by DCGM",
        Absent(
            "it is DCGM's own assessment; ours is `hw.status`, from the driver's counters, and `gpu.fault.active` has its inputs",
        ),
    ),
    (
        "P2P status of pairs of GPUs",
        Absent("a matrix that is constant during a job; `nvidia-smi topo -p2p` prints it"),
    ),
    ("memory by process", Given(&["gpu.process.memory"])),
    (
        "SM, memory, encoder, decoder utilization by process",
        Given(&["gpu.process.utilization"]),
    ),
    (
        "JPEG and OFA utilization by process",
        Absent(
            "drivers before 535 lack the call, and training uses neither engine; `gpu.utilization` has both for the GPU",
        ),
    ),
    (
        "accounting by process",
        Given(&["gpu.process.peak_memory", "gpu.process.time"]),
    ),
    ("MIG instances", Given(&["gpu.mig.instances", "gpu.info"])),
    (
        "memory by MIG instance",
        Given(&["gpu.mig.memory.used", "gpu.mig.memory.limit"]),
    ),
    (
        "performance counters by MIG instance",
        Given(&["gpu.sm.active", "gpu.pipe.utilization"]),
    ),
    (
        "vGPU licence, confidential computing, DRAM encryption",
        Given(&["gpu.feature.active"]),
    ),
    (
        "CUDA launches, their sizes, bytes allocated and copied",
        Absent("the driver does not have it; it needs probes in every process, which slow the training"),
    ),
    (
        "lowest, mean and highest GPU utilization of a host",
        Absent("a query: `min by (host_name) (gpu_utilization_ratio)`"),
    ),
    (
        "memory of the host",
        Absent("every host agent reports it (`system.memory.usage`)"),
    ),
    (
        "name, UUID, PCI address, serial, VBIOS, driver, CUDA",
        Given(&["gpu.info"]),
    ),
    (
        "duration and last success of the collector",
        Given(&[
            "pulsetrain.source.duration",
            "pulsetrain.source.last_success_time",
        ]),
    ),
    ("return code of NVML by query", Given(&["gpu.metric.unavailable"])),
];

/// The telemetry that the source sends in addition to the rows of its table: the memory of MIG devices, and values that it knows
/// or counts itself.
const OUTSIDE_THE_TABLE: [&str; 10] = [
    "gpu.imex.daemon_state",
    "gpu.imex.domain_state",
    "gpu.info",
    "gpu.metric.unavailable",
    "gpu.mig.instances",
    "gpu.mig.memory.limit",
    "gpu.mig.memory.used",
    "gpu.xid",
    "pulsetrain.source.duration",
    "pulsetrain.source.last_success_time",
];

/// Returns the lines with their answers as Markdown.
pub(crate) fn markdown() -> String {
    let mut out = String::from("| what others export | in NVML or DCGM | here |\n|---|---|---|\n");
    for (thing, place) in lines() {
        let here = match answer(thing) {
            Given(metrics) => {
                let named: Vec<_> = metrics.iter().map(|metric| format!("`{metric}`")).collect();
                named.join(", ")
            }
            Absent(why) => format!("no: {why}"),
        };
        // Writing into a String cannot fail.
        let _ = writeln!(out, "| {thing} | {place} | {here} |");
    }
    out
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = UNION
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once(" | ").expect("a line has a thing and its place"))
}

fn answer(thing: &str) -> &'static Answer {
    let found = ANSWERS.iter().find(|(known, _)| *known == thing);
    &found.unwrap_or_else(|| panic!("{thing:?} is unaccounted for")).1
}

#[test]
fn every_metric_of_other_exporters_is_covered_or_explained() {
    let things: Vec<_> = lines().map(|(thing, _)| thing).collect();
    assert!(things.len() > 75, "only {} lines", things.len());
    for thing in &things {
        let _ = answer(thing);
    }
    for (known, _) in ANSWERS {
        assert!(things.contains(known), "nobody exports {known:?}");
    }
}

#[test]
fn every_metric_that_covers_another_exporter_is_emitted() {
    let table = pulsetrain_gpu::nvml::table();
    let sent: Vec<_> = table
        .iter()
        .flat_map(|row| row.also.iter().copied().chain([row.metric]))
        .map(|metric| metric.name)
        .chain(OUTSIDE_THE_TABLE)
        .collect();
    for (thing, answer) in ANSWERS {
        let Given(metrics) = answer else { continue };
        for metric in *metrics {
            assert!(
                sent.contains(metric),
                "{metric}, which covers {thing:?}, is never sent"
            );
        }
    }
}

#[test]
fn every_table_metric_covers_a_metric_of_another_exporter() {
    let named: Vec<_> = ANSWERS
        .iter()
        .filter_map(|(_, answer)| match answer {
            Given(metrics) => Some(*metrics),
            Absent(_) => None,
        })
        .flatten()
        .collect();
    for row in pulsetrain_gpu::nvml::table() {
        assert!(
            named.contains(&&row.metric.name),
            "{} covers nothing",
            row.metric.name
        );
    }
}
