//! Captured output of `nvidia-smi` on real GPUs (`tests/corpus/nvidia-smi`): with a driver that has these values, and lacks
//! those that are `N/A`, our metrics have exactly these values.

use std::{collections::BTreeMap, fmt::Write, fs};

use pulsetrain_tests::corpus;

use crate::watch::Watch;

/// A field of `nvidia-smi`.
struct Field {
    name: &'static str,
    /// The reading of the scenario, and the size of its unit in units of the field.
    reading: (&'static str, f64),
    metric: &'static str,
    attributes: &'static [(&'static str, &'static str)],
    /// The size of our unit in units of the field.
    scale: f64,
}

const fn field(
    name: &'static str,
    reading: (&'static str, f64),
    metric: &'static str,
    attributes: &'static [(&'static str, &'static str)],
    scale: f64,
) -> Field {
    Field {
        name,
        reading,
        metric,
        attributes,
        scale,
    }
}

const MIB: f64 = 1_048_576.0;
const MEGA: f64 = 1e6;
const PERCENT: f64 = 0.01;
const GENERAL: &[(&str, &str)] = &[("gpu.task", "general")];
const CORRECTED: &[(&str, &str)] = &[("gpu.ecc.severity", "corrected")];
const UNCORRECTED: &[(&str, &str)] = &[("gpu.ecc.severity", "uncorrected")];

#[rustfmt::skip]
const FIELDS: &[Field] = &[
    field("utilization.gpu", ("utilization.gpu_percent", 1.0), "gpu.utilization", GENERAL, PERCENT),
    field("utilization.memory", ("utilization.memory_percent", 1.0), "gpu.memory.activity", &[], PERCENT),
    field("utilization.encoder", ("utilization.encoder_percent", 1.0), "gpu.utilization", &[("gpu.task", "encoder")], PERCENT),
    field("utilization.decoder", ("utilization.decoder_percent", 1.0), "gpu.utilization", &[("gpu.task", "decoder")], PERCENT),
    field("utilization.jpeg", ("utilization.jpeg_percent", 1.0), "gpu.utilization", &[("gpu.task", "jpeg")], PERCENT),
    field("utilization.ofa", ("utilization.ofa_percent", 1.0), "gpu.utilization", &[("gpu.task", "ofa")], PERCENT),
    field("memory.total", ("memory.total_bytes", MIB), "gpu.memory.limit", &[], MIB),
    field("memory.reserved", ("memory.reserved_bytes", MIB), "gpu.memory.reserved", &[], MIB),
    field("memory.used", ("memory.used_bytes", MIB), "gpu.memory.used", &[], MIB),
    field("power.draw.instant", ("power.instant_mw", 1e3), "gpu.power", &[("gpu.power.reading", "instant")], 1.0),
    field("power.draw.average", ("power.average_mw", 1e3), "gpu.average_power", &[], 1.0),
    field("module.power.draw.instant", ("power.module.instant_mw", 1e3), "gpu.module_power", &[("gpu.power.reading", "instant")], 1.0),
    field("memory.power.draw.average", ("power.memory.average_mw", 1e3), "gpu.memory_power", &[], 1.0),
    field("power.limit", ("power.limit.requested_mw", 1e3), "gpu.power_limit", &[("gpu.power.limit_kind", "requested")], 1.0),
    field("enforced.power.limit", ("power.limit.enforced_mw", 1e3), "gpu.power_limit", &[("gpu.power.limit_kind", "enforced")], 1.0),
    field("power.default_limit", ("power.limit.default_mw", 1e3), "gpu.power_limit", &[("gpu.power.limit_kind", "default")], 1.0),
    field("power.min_limit", ("power.limit.min_mw", 1e3), "gpu.power_limit", &[("gpu.power.limit_kind", "min")], 1.0),
    field("power.max_limit", ("power.limit.max_mw", 1e3), "gpu.power_limit", &[("gpu.power.limit_kind", "max")], 1.0),
    field("power_smoothing.primary_power_floor", ("power_smoothing.primary_floor_w", 1.0), "gpu.power_smoothing.power", &[("gpu.power_smoothing.level", "primary_floor")], 1.0),
    field("power_smoothing.window_multiplier", ("power_smoothing.window_ms", 1.0), "gpu.power_smoothing.window_unit", &[], 1e-3),
    field("edpp_multiplier", ("power.edpp_percent", 1.0), "gpu.edpp_ratio", &[], PERCENT),
    field("temperature.gpu", ("temperature.gpu_c", 1.0), "gpu.temperature", &[("gpu.temperature.sensor", "gpu")], 1.0),
    field("temperature.memory", ("temperature.memory_c", 1.0), "gpu.temperature", &[("gpu.temperature.sensor", "memory")], 1.0),
    field("temperature.gpu.tlimit", ("temperature.margin_c", 1.0), "gpu.temperature_margin", &[], 1.0),
    field("fan.speed", ("fan.0.percent", 1.0), "gpu.fan.speed_ratio", &[("gpu.fan.index", "0")], PERCENT),
    field("clocks.current.graphics", ("clock.graphics_mhz", 1.0), "gpu.clock.frequency", &[("gpu.clock.domain", "graphics")], MEGA),
    field("clocks.current.sm", ("clock.sm_mhz", 1.0), "gpu.clock.frequency", &[("gpu.clock.domain", "sm")], MEGA),
    field("clocks.current.memory", ("clock.memory_mhz", 1.0), "gpu.clock.frequency", &[("gpu.clock.domain", "memory")], MEGA),
    field("clocks.current.video", ("clock.video_mhz", 1.0), "gpu.clock.frequency", &[("gpu.clock.domain", "video")], MEGA),
    field("clocks.max.sm", ("clock.max.sm_mhz", 1.0), "gpu.clock.limit", &[("gpu.clock.domain", "sm"), ("gpu.clock.limit_kind", "max")], MEGA),
    field("clocks.applications.graphics", ("clock.application.graphics_mhz", 1.0), "gpu.clock.limit", &[("gpu.clock.domain", "graphics"), ("gpu.clock.limit_kind", "application")], MEGA),
    field("clocks_event_reasons_counters.sw_power_cap", ("throttle.power_ns", 1e3), "gpu.throttle.time", &[("gpu.throttle.reason", "sw_power_cap")], 1e-6),
    field("clocks_event_reasons_counters.sync_boost", ("throttle.sync_boost_ns", 1e3), "gpu.throttle.time", &[("gpu.throttle.reason", "sync_boost")], 1e-6),
    field("pcie.link.gen.current", ("pcie.generation", 1.0), "gpu.pcie.generation", &[("gpu.link.reading", "current")], 1.0),
    field("pcie.link.width.current", ("pcie.width", 1.0), "gpu.pcie.width", &[("gpu.link.reading", "current")], 1.0),
    field("pcie.link.width.max", ("pcie.width_max", 1.0), "gpu.pcie.width", &[("gpu.link.reading", "max")], 1.0),
    field("ecc.errors.corrected.volatile.total", ("ecc.corrected.volatile", 1.0), "gpu.ecc.errors", CORRECTED, 1.0),
    field("ecc.errors.uncorrected.volatile.total", ("ecc.uncorrected.volatile", 1.0), "gpu.ecc.errors", UNCORRECTED, 1.0),
    field("ecc.errors.corrected.aggregate.total", ("ecc.corrected.aggregate", 1.0), "gpu.ecc.lifetime_errors", CORRECTED, 1.0),
    field("ecc.errors.uncorrected.aggregate.total", ("ecc.uncorrected.aggregate", 1.0), "gpu.ecc.lifetime_errors", UNCORRECTED, 1.0),
    field("ecc.errors.corrected.volatile.dram", ("ecc.corrected.volatile.dram", 1.0), "gpu.ecc.location_errors", &[("gpu.ecc.severity", "corrected"), ("gpu.ecc.location", "dram")], 1.0),
    field("ecc.errors.corrected.volatile.l2_cache", ("ecc.corrected.volatile.l2_cache", 1.0), "gpu.ecc.location_errors", &[("gpu.ecc.severity", "corrected"), ("gpu.ecc.location", "l2")], 1.0),
    field("ecc.errors.uncorrected.aggregate.sram.sm", ("ecc.sram.bucket.sm", 1.0), "gpu.ecc.lifetime_sram_errors", &[("gpu.ecc.location", "sm")], 1.0),
    field("ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", ("ecc.sram.threshold_exceeded", 1.0), "gpu.fault.active", &[("gpu.fault", "sram_threshold_exceeded")], 1.0),
    field("remapped_rows.correctable", ("remapped_rows.corrected", 1.0), "gpu.remapped_rows", CORRECTED, 1.0),
    field("remapped_rows.uncorrectable", ("remapped_rows.uncorrected", 1.0), "gpu.remapped_rows", UNCORRECTED, 1.0),
    field("remapped_rows.pending", ("remapped_rows.pending", 1.0), "gpu.fault.active", &[("gpu.fault", "row_remap_pending")], 1.0),
    field("remapped_rows.failure", ("remapped_rows.failure", 1.0), "gpu.fault.active", &[("gpu.fault", "row_remap_failure")], 1.0),
    field("remapped_rows.histogram.max", ("remapped_rows.banks.max", 1.0), "gpu.row_remap.banks", &[("gpu.row_remap.availability", "max")], 1.0),
    field("ecc.mode.current", ("mode.ecc", 1.0), "gpu.feature.active", &[("gpu.feature", "ecc")], 1.0),
    field("ecc.mode.pending", ("mode.ecc_pending", 1.0), "gpu.feature.active", &[("gpu.feature", "ecc_pending")], 1.0),
    field("mig.mode.current", ("mode.mig", 1.0), "gpu.feature.active", &[("gpu.feature", "mig")], 1.0),
    field("gsp.mode.current", ("mode.gsp", 1.0), "gpu.feature.active", &[("gpu.feature", "gsp")], 1.0),
    field("persistence_mode", ("mode.persistence", 1.0), "gpu.feature.active", &[("gpu.feature", "persistence")], 1.0),
    field("protected_memory.total", ("memory.protected_total_bytes", MIB), "gpu.protected_memory.limit", &[], MIB),
];

/// Readings that exist only together with others.
const TOGETHER: &[(&str, &[&str])] = &[
    ("utilization.encoder_percent", &["utilization.encoder_period_us"]),
    ("utilization.jpeg_percent", &["utilization.jpeg_period_us"]),
    ("utilization.ofa_percent", &["utilization.ofa_period_us"]),
    ("mode.ecc", &["mode.ecc_default"]),
    ("mode.mig", &["mode.mig_pending"]),
    ("fan.0.percent", &["fan.count"]),
    (
        "ecc.corrected.volatile",
        &[
            "ecc.corrected.volatile.sram",
            "ecc.uncorrected.volatile.dram",
            "ecc.uncorrected.volatile.sram",
        ],
    ),
    (
        "ecc.corrected.aggregate",
        &[
            "ecc.corrected.aggregate.dram",
            "ecc.corrected.aggregate.sram",
            "ecc.uncorrected.aggregate.dram",
            "ecc.uncorrected.aggregate.sram",
        ],
    ),
];

/// Parses a cell: `631.95 W`, `Yes`, `Enabled`. Returns `None` if the GPU does not have the value.
fn number(cell: &str) -> Option<f64> {
    match cell {
        "Enabled" | "Yes" => Some(1.0),
        "Disabled" | "No" => Some(0.0),
        _ => cell.split(' ').next().and_then(|word| word.parse().ok()),
    }
}

/// Compares our metrics with a capture, on a driver with its values.
fn assert_like(capture: &str, scenario: &str) {
    let text =
        fs::read_to_string(corpus(&format!("nvidia-smi/{capture}.tsv"))).expect("a capture can be read");
    let cells: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('\t')).collect();
    let values: Vec<(&Field, Option<f64>)> = FIELDS
        .iter()
        .filter_map(|field| Some((field, number(cells.get(field.name)?))))
        .collect();
    assert!(
        values.len() > 40,
        "{capture} has only {} of the fields",
        values.len()
    );
    let mut readings = String::new();
    for (field, value) in &values {
        let (name, scale) = field.reading;
        // Writing into a String cannot fail.
        let _ = match value {
            Some(value) => writeln!(readings, "        {name}: {}", value * scale),
            None => writeln!(readings, "        {name}: null"),
        };
        let together = TOGETHER
            .iter()
            .filter(|(of, _)| *of == name)
            .flat_map(|(_, others)| *others);
        for other in together {
            let _ = match value {
                Some(value) if *other == "fan.count" => {
                    writeln!(readings, "        {other}: {}", value.signum().max(1.0))
                }
                Some(_) => continue,
                None => writeln!(readings, "        {other}: null"),
            };
        }
    }
    let capability = cells["compute_cap"]
        .split_once('.')
        .expect("a compute capability");
    let changes = format!(
        "gpus:\n  count: 1\n  all:\n    facts: {{name: {}}}\n    readings:\n        compute_capability.major: {}\n        \
         compute_capability.minor: {}\n{readings}",
        cells["name"], capability.0, capability.1
    );
    let (_fake, watch) = Watch::scenario(scenario, &changes);
    watch.wait_any("gpu.memory.used", &[]);
    watch.wait_passes(5);
    let missing: Vec<String> = watch
        .inventory()
        .gpus
        .iter()
        .flat_map(|gpu| gpu.missing().into_values().flatten())
        .map(|metric| metric.name.to_owned())
        .collect();
    for (field, value) in &values {
        let points = watch.points(field.metric, field.attributes);
        let mut of_gpu = points
            .iter()
            .filter(|point| !point.attributes.contains_key("gpu.mig.instance_id"));
        match (value, of_gpu.next_back()) {
            (Some(value), Some(point)) => {
                let expected = value * field.scale;
                assert!(
                    (point.value - expected).abs() <= 1e-6 * expected.abs().max(1e-9),
                    "{capture}: {} is {expected}, and {} is {}",
                    field.name,
                    field.metric,
                    point.value
                );
            }
            (None, None) => {
                let others = watch.points(field.metric, &[]);
                assert!(
                    !others.is_empty() || missing.contains(&field.metric.to_owned()),
                    "{capture}: {} is missing without a reason",
                    field.metric
                );
            }
            (value, point) => panic!(
                "{capture}: {} is {value:?}, and {} {:?} is {:?}",
                field.name,
                field.metric,
                field.attributes,
                point.map(|point| point.value)
            ),
        }
    }
}

#[test]
fn metrics_match_the_captures_of_nvidia_smi() {
    for (capture, scenario) in [
        ("h100-80gb-hbm3-590.48.01", "h100x8"),
        ("h200-590.48.01", "h100x8"),
        ("a100-sxm4-40gb-570.148.08", "a100x8"),
        ("b200-580.105.08", "b200x8"),
        ("gb200-580.173.02", "gb200"),
        ("gb300-580.173.02", "gb200"),
        ("h100-mig-590.48.01", "mig"),
        ("h200-mig-590.48.01", "mig"),
        ("l40s-595.80", "l40s"),
        ("geforce-rtx-4080-super-595.71.05", "l40s"),
        ("geforce-rtx-2080-super-595.71.05", "l40s"),
        ("geforce-rtx-2080-super-610.57.04", "l40s"),
    ] {
        assert_like(capture, scenario);
    }
}
