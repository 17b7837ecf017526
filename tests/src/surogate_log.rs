//! What a Surogate log says, read with plain serde_json: the points that an import of it must come to.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

/// Where a number of a record goes: the record's kind, the field, the metric, and the factor to the metric's unit.
const GAUGES: &[(&str, &str, &str, f64)] = &[
    ("dataset", "files", "data.files", 1.0),
    ("dataset", "tokens", "data.tokens", 1.0),
    ("dataset", "file_index", "data.file_index", 1.0),
    ("dataset", "chunk_index", "data.chunk_index", 1.0),
    ("dataset", "seed", "data.seed", 1.0),
    ("sol", "blocks", "train.flops_per_token", 1.0),
    ("sol", "lm_head", "train.flops_per_token", 1.0),
    ("sol", "attention", "train.flops_per_token", 1.0),
    ("sol", "tps", "train.expected_throughput", 1.0),
    ("sol", "tf32_peak", "gpu.peak_flops", 1e12),
    ("sol", "bf16_peak", "gpu.peak_flops", 1e12),
    ("sol", "fp16_peak", "gpu.peak_flops", 1e12),
    ("sol", "fp8_peak", "gpu.peak_flops", 1e12),
    ("step", "step", "train.global_step", 1.0),
    ("step", "epoch", "train.epoch", 1.0),
    ("step", "loss", "train.loss", 1.0),
    ("step", "norm", "train.grad_norm", 1.0),
    ("step", "lr", "train.learning_rate", 1.0),
    ("eval", "epoch", "train.epoch", 1.0),
    ("eval", "loss", "eval.loss", 1.0),
    ("gpu", "clock", "gpu.clock.frequency", 1e6),
    ("gpu", "max_clock", "gpu.clock.limit", 1e6),
    ("gpu", "fan", "gpu.fan.speed_ratio", 1e-2),
    ("gpu", "power", "gpu.power", 1e-3),
    ("gpu", "power_limit", "gpu.power_limit", 1e-3),
    ("gpu", "temperature", "gpu.temperature", 1.0),
    ("gpu", "temp_slowdown", "gpu.temperature_limit", 1.0),
    ("gpu", "gpu_util", "gpu.utilization", 1e-2),
    ("gpu", "mem_util", "gpu.memory.activity", 1e-2),
    ("gpu", "dram_free", "gpu.memory.free", 1.0),
    ("gpu", "pcie_rx", "gpu.pcie.throughput", 1.0),
    ("gpu", "pcie_tx", "gpu.pcie.throughput", 1.0),
];

/// The numbers of a mixture of experts, which a `moe` record has as they are and a `step` record with `moe_` before them.
const EXPERTS: [(&str, &str); 10] = [
    ("aux_loss", "moe.aux_loss"),
    ("z_loss", "moe.z_loss"),
    ("load_imbalance", "moe.load_imbalance"),
    ("expert_utilization", "moe.expert_utilization"),
    ("active_experts", "moe.active_experts"),
    ("max_expert_fraction", "moe.max_expert_fraction"),
    ("min_active_expert_fraction", "moe.min_active_expert_fraction"),
    ("load_cv", "moe.load_cv"),
    ("router_entropy", "moe.router_entropy"),
    ("router_confidence", "moe.router_confidence"),
];

/// What grows or is observed from record to record, and is sent as what it has come to: kind, field, metric, factor.
const TOTALS: [(&str, &str, &str, f64); 4] = [
    ("step", "step_tokens", "train.tokens", 1.0),
    ("step", "duration_ms", "train.step.duration", 1e-3),
    ("eval", "eval_tokens", "eval.tokens", 1.0),
    ("eval", "duration_ms", "eval.duration", 1e-3),
];

/// The kinds of memory that each segment of an `allocator` record has a number for.
const MEMORY: [&str; 4] = ["device", "managed", "pinned", "pageable"];

/// The state sets: kind, field, metric.
const STATES: [(&str, &str, &str); 2] = [
    ("step", "phase", "train.phase"),
    ("gpu", "throttle", "gpu.throttle.active"),
];

/// Points of each metric as (unix nanoseconds, value), sorted.
pub type Points = BTreeMap<&'static str, Vec<(u64, f64)>>;

/// A whole log.
#[derive(Debug)]
pub struct SurogateLog(Vec<Record>);

/// One record.
#[derive(Clone, Debug)]
pub struct Record(Value);

impl SurogateLog {
    /// Reads a log that is valid JSON.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let records: Vec<Value> = serde_json::from_str(&text).expect("the log is valid JSON");
        Self(records.into_iter().map(Record).collect())
    }

    /// All records of a kind.
    pub fn of_kind(&self, kind: &str) -> Vec<&Record> {
        self.0.iter().filter(|record| record.0["log"] == kind).collect()
    }

    /// The number of records.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The points that an import comes to, state sets left out.
    pub fn expected_points(&self) -> Points {
        let mut points = Points::new();
        self.add_gauges(&mut points);
        self.add_experts(&mut points);
        self.add_totals(&mut points);
        self.add_segments(&mut points);
        for values in points.values_mut() {
            values.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        }
        points
    }

    /// When each state set entered another state.
    pub fn expected_changes(&self) -> BTreeMap<&'static str, Vec<u64>> {
        let changes = STATES.map(|(kind, field, metric)| {
            let mut records = self.of_kind(kind);
            records.dedup_by(|record, before| record.0[field] == before.0[field]);
            (metric, records.into_iter().map(Record::time).collect())
        });
        changes.into()
    }

    fn add_gauges(&self, points: &mut Points) {
        for (kind, field, metric, factor) in GAUGES {
            for record in self.of_kind(kind) {
                points
                    .entry(metric)
                    .or_default()
                    .push((record.time(), record.number(field) * factor));
            }
        }
    }

    fn add_experts(&self, points: &mut Points) {
        for (field, metric) in EXPERTS {
            for (kind, field) in [("moe", field.to_owned()), ("step", format!("moe_{field}"))] {
                for record in self.of_kind(kind).into_iter().filter(|record| record.has(&field)) {
                    points
                        .entry(metric)
                        .or_default()
                        .push((record.time(), record.number(&field)));
                }
            }
        }
    }

    fn add_totals(&self, points: &mut Points) {
        for (kind, field, metric, factor) in TOTALS {
            let mut total = 0.0;
            for record in self.of_kind(kind) {
                total += record.number(field) * factor;
                points.entry(metric).or_default().push((record.time(), total));
            }
        }
        for (count, record) in (1_u32..).zip(self.of_kind("step")) {
            points
                .entry("train.steps")
                .or_default()
                .push((record.time(), f64::from(count)));
        }
    }

    fn add_segments(&self, points: &mut Points) {
        for record in self.of_kind("allocator") {
            for segment in record.0["stats"]
                .as_array()
                .expect("an allocator record lists segments")
            {
                for kind in MEMORY {
                    let bytes = segment[kind]
                        .as_f64()
                        .expect("a segment has a number for each kind of memory");
                    points
                        .entry("memory.segment.size")
                        .or_default()
                        .push((record.time(), bytes));
                }
            }
        }
    }
}

impl Record {
    /// When it was written, in unix nanoseconds.
    pub fn time(&self) -> u64 {
        /// 2026-11-21T00:00:00Z, the day of every log in the corpus.
        const MIDNIGHT_SECS: u64 = 1_795_219_200;
        let text = self.0["time"].as_str().expect("a record has a time");
        let clock = text
            .strip_prefix("2026-11-21 ")
            .unwrap_or_else(|| panic!("{text} is of another day"));
        let part = |from: usize, to: usize| clock[from..to].parse::<u64>().expect("a time has digits");
        (MIDNIGHT_SECS + part(0, 2) * 3_600 + part(3, 5) * 60 + part(6, 8)) * 1_000_000_000 + part(9, 18)
    }

    /// A field that is a number.
    pub fn number(&self, field: &str) -> f64 {
        self.0[field]
            .as_f64()
            .unwrap_or_else(|| panic!("{field} is no number in {}", self.0))
    }

    /// All fields.
    pub fn fields(&self) -> &Value {
        &self.0
    }

    fn has(&self, field: &str) -> bool {
        self.0.get(field).is_some()
    }
}
