//! Parses MaxText's lines about memory: the compiler's estimates, and the usage of devices and host.
//!
//! MaxText prints "GB" and divides by 2^30.

use pulsetrain_mapping::{CoverageRow, RecordTable, coverage_rules, number_text};
use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue as Out},
};
use pulsetrain_semconv::{Metric, attribute, metric};

use pulsetrain_record::{Recorder, SkipReason};

const GIB: f64 = (1_u64 << 30) as f64;

/// The rows of "Total estimated memory size:". Older releases omit "estimated", or "total" and the unit.
static ESTIMATES: RecordTable = RecordTable::new("maxtext", "memory");

/// The subject of the lines under a heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Subject {
    #[default]
    Device,
    Host,
}

/// Parses the lines about memory.
#[derive(Debug, Default)]
pub(super) struct MemoryLines {
    subject: Subject,
}

impl MemoryLines {
    /// Parses a line and returns whether it has a value.
    pub(super) fn line(
        &mut self,
        text: &str,
        time: impl FnOnce() -> UnixNanos,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        match text.trim_start() {
            heading if heading.starts_with("Memstats: ") => self.subject = Subject::Device,
            heading if heading.starts_with("RAMstats: ") => self.subject = Subject::Host,
            estimate if is_estimate(estimate) => {
                estimates(estimate, time(), recorder);
                return true;
            }
            none if UNAVAILABLE.iter().any(|begin| none.starts_with(begin)) => {
                recorder.skip_value(SkipReason::NotMeasured);
                return true;
            }
            usage if usage.starts_with(USING) => {
                if let Some(usage) = Usage::parse(&usage[USING.len()..]) {
                    self.usage(&usage, time(), recorder);
                    return true;
                }
            }
            _ => {}
        }
        false
    }

    fn usage(&self, usage: &Usage<'_>, time: UnixNanos, recorder: &mut Recorder<'_>) {
        let device = [(&attribute::DEVICE_ID, Out::Text(usage.device))];
        let mut record = |metric: &'static Metric, value: f64, attributes: &[Attribute<'_>]| {
            recorder.record(metric, time, value, attributes);
        };
        match self.subject {
            Subject::Device => {
                record(&metric::MEMORY_FRAMEWORK_ALLOCATED, usage.used * GIB, &device);
                record(&metric::MEMORY_FRAMEWORK_LIMIT, usage.limit * GIB, &device);
                record(
                    &metric::MEMORY_FRAMEWORK_UTILIZATION,
                    usage.percent / 100.0,
                    &device,
                );
            }
            Subject::Host => {
                record(&metric::MEMORY_HOST_USED, usage.used * GIB, &[]);
                record(&metric::MEMORY_HOST_LIMIT, usage.limit * GIB, &[]);
                if let Some(available) = usage.available {
                    record(&metric::MEMORY_HOST_AVAILABLE, available * GIB, &[]);
                }
                recorder.skip_value(SkipReason::Ignored("share_of_used_and_limit"));
            }
        }
    }
}

const USING: &str = "Using (GB) ";
const UNAVAILABLE: [&str; 2] = ["Memstats unavailable", "RAM stats unavailable"];

/// `44.63 / 95.74 (46.615835%) on TPU_0(process=0,(0,0,0,0))`, or of the host `4.5 / 400.0 (1.125%) -->  Available:395.0`.
struct Usage<'a> {
    used: f64,
    limit: f64,
    percent: f64,
    /// The device's name, without the parenthesis that follows it.
    device: &'a str,
    /// The available memory of the host.
    available: Option<f64>,
}

impl<'a> Usage<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (used, rest) = text.split_once(" / ")?;
        let (limit, rest) = rest.split_once(" (")?;
        let (percent, rest) = rest.split_once("%)")?;
        let device = rest.trim().strip_prefix("on ").unwrap_or_default();
        let available = rest.split_once("Available:");
        Some(Self {
            available: available.and_then(|(_, size)| number_text::any(size.trim())),
            used: number_text::any(used.trim())?,
            limit: number_text::any(limit.trim())?,
            percent: number_text::any(percent)?,
            device: device.split('(').next().unwrap_or(device).trim(),
        })
    }
}

/// Returns whether a line is `Total estimated memory size: 100.4 GB, ...`, or before July 2025 `Output size: 1657041920, ...,
/// in bytes.`.
fn is_estimate(text: &str) -> bool {
    (text.starts_with("Total ") && text.contains("memory size: "))
        || (text.starts_with("Output size: ") && text.ends_with(IN_BYTES))
}

const IN_BYTES: &str = ", in bytes.";

fn estimates(text: &str, time: UnixNanos, recorder: &mut Recorder<'_>) {
    let in_bytes = text.strip_suffix(IN_BYTES);
    let sizes = in_bytes.unwrap_or(text.trim_end_matches('.'));
    for part in sizes.split(", ") {
        let Some((name, size)) = part.split_once(" size: ") else {
            continue;
        };
        let name = name.to_ascii_lowercase().replace("estimated ", "");
        let name = name.trim_end_matches(" memory");
        let size = size.trim_end_matches(" GB");
        let part = ESTIMATES.resolve(name).zip(number_text::any(size));
        if let Some((resolved, size)) = part {
            let bytes = in_bytes.map_or_else(|| resolved.mapping.convert(size), |_| Some(size));
            let attributes: Vec<Attribute<'_>> = resolved.fixed().collect();
            let bytes = bytes.unwrap_or(size);
            recorder.record(&metric::MEMORY_ESTIMATE_SIZE, time, bytes, &attributes);
        }
    }
}

/// Returns the coverage rows of the lines about memory.
pub(super) fn coverage() -> Vec<CoverageRow> {
    let rules = coverage_rules! {
        "Memstats: Using a" => metric::MEMORY_FRAMEWORK_ALLOCATED.name, "times 2^30";
        "Memstats: Using / b" => metric::MEMORY_FRAMEWORK_LIMIT.name, "times 2^30";
        "Memstats: Using (c%)" => metric::MEMORY_FRAMEWORK_UTILIZATION.name, "divided by 100";
        "RAMstats: Using a" => metric::MEMORY_HOST_USED.name, "times 2^30";
        "RAMstats: Using / b" => metric::MEMORY_HOST_LIMIT.name, "times 2^30";
        "RAMstats: Using (c%)" => "(left out: share_of_used_and_limit)", "";
        "RAMstats: Available" => metric::MEMORY_HOST_AVAILABLE.name, "times 2^30";
        "Output size: a, temp size: b, argument size: c, host temp size: d, in bytes." =>
            metric::MEMORY_ESTIMATE_SIZE.name, "as it is, `By`";
        "Memstats unavailable, RAM stats unavailable" => "(left out: not_measured)", "";
    };
    ESTIMATES.coverage().into_iter().chain(rules).collect()
}
