//! Parses KempnerForge's standard output and error (`kempnerforge/metrics/{logger,tracker,memory}.py`): lines after `[rank N]
//! INFO`, without a time. Training, mixtures of experts and evaluations share the prefix `[step N]` and differ in their keys.

use pulsetrain_mapping::{
    CoverageRow, Field, FieldValue, MetricMapper, RecordMeta, RecordTable, coverage_rules, number_text,
};
use pulsetrain_otlp::write::AttributeValue as Out;
use pulsetrain_semconv::{attribute, event, metric};

use super::delimited::Delimiters;
use super::lines::{self, Line, LineFormat};
use super::{LogFormat, literal, spans};
use pulsetrain_record::Recorder;

/// The row of KempnerForge in the table of formats.
pub(super) const FORMAT: LogFormat = LogFormat {
    name: "kempnerforge",
    brief: "standard output of KempnerForge",
    framework: "kempnerforge",
    coverage: coverage_table,
    ..lines::row::<KempnerForge>()
};

/// The beginning of a line about the memory of a GPU.
const GPU: &str = "GPU mem: ";

static STEP: RecordTable = RecordTable::new("kempnerforge", "step");

/// The rows of "GPU mem: 1.2GB allocated, 3.4GB peak, 5.6GB reserved / 80.0GB total (4%)".
static GPU_MEMORY: RecordTable = RecordTable::new("kempnerforge", "gpu_memory");

static MODEL: RecordTable = RecordTable::new("kempnerforge", "model");

/// The beginnings of lifecycle messages.
const MESSAGES: [&str; 5] = [
    "Starting training: ",
    "Training complete: ",
    "Checkpoint committed: ",
    "Sync checkpoint saved: ",
    "Shutdown requested ",
];

/// Parses KempnerForge's lines.
#[derive(Debug, Default)]
struct KempnerForge {
    fields: MetricMapper,
}

impl LineFormat for KempnerForge {
    fn signature(text: &str) -> Option<&'static str> {
        let message = message(text)?;
        if message.starts_with("Training config: JobConfig(") {
            return Some("\"Training config: JobConfig(\" after \"[rank N]\"");
        }
        let (_, rest) = step(message)?;
        (rest.contains('=') || rest.starts_with(GPU)).then_some("lines with \"[rank N]\" and \"[step N]\"")
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        if let Some((step, fields)) = step_fields(line.text) {
            let meta = line.meta(Some(step));
            record_step(&fields, &mut self.fields, meta, line.is_live(), recorder);
            return true;
        }
        let Some(message) = message(line.text) else {
            return false;
        };
        if let Some((step, usage)) =
            step(message).and_then(|(step, rest)| Some((step, rest.strip_prefix(GPU)?)))
        {
            let (meta, fields) = (line.meta(Some(step)), gpu_memory(usage));
            self.fields.record(&GPU_MEMORY, meta, &fields, &[], recorder);
        } else if let Some(config) = message.strip_prefix("Training config: ") {
            let attributes = [(&attribute::TRAIN_FRAMEWORK, Out::Text("kempnerforge"))];
            let body = Some(Out::Text(config));
            recorder.record_event(&event::RUN_CONFIG, line.read_time(), body, &attributes);
        } else if let Some(parameters) = parameters(message) {
            let fields = [("parameters".into(), FieldValue::Number(parameters))];
            self.fields
                .record(&MODEL, line.meta(None), &fields, &[], recorder);
        } else if MESSAGES.iter().any(|begin| message.starts_with(begin)) {
            let body = Some(Out::Text(message));
            recorder.record_event(&event::RUN_MESSAGE, line.read_time(), body, &[]);
        } else {
            return false;
        }
        true
    }
}

/// Returns the step and the fields of a line: `[rank 0] INFO     [step 10] loss=6.8125 | lr=3.00e-04 | tok/s=1,129 | mfu=46.6%
/// | mem=41.5/80GB | step_time=0.23s`.
fn step_fields(text: &str) -> Option<(i64, Vec<Field<'_>>)> {
    let (number, rest) = step_text(message(text)?)?;
    if rest.starts_with(GPU) {
        return None;
    }
    let step = number_text::count(number)? as i64;
    let mut fields = Vec::with_capacity(16);
    for field in STEP_DELIMITERS.fields(rest) {
        // `mem=0.5/80GB` is two fields.
        if field.key == "mem"
            && let Some((used, total)) = field.text.split_once('/')
        {
            fields.extend([("mem".into(), size(used)), ("mem total".into(), size(total))]);
        } else {
            fields.push((field.key.into(), scaled(field.number, field.text)));
        }
    }
    Some((step, fields))
}

fn record_step(
    fields: &[Field<'_>],
    known: &mut MetricMapper,
    meta: RecordMeta,
    is_live: bool,
    recorder: &mut Recorder<'_>,
) {
    let time = meta.time_unix_nanos;
    let duration = literal::number(fields, "step_time");
    let is_train = fields.iter().any(|(key, _)| key == "loss");
    if let Some(step) = meta.step.filter(|_| is_train) {
        known.step(time, step, recorder);
    }
    let spans = known.record(&STEP, meta, fields, &[], recorder);
    if is_live && let (Some(step), Some(duration)) = (meta.step, duration) {
        spans::step(step, time, duration, &spans.step, recorder);
    }
}

/// The delimiters of a line of a step.
const STEP_DELIMITERS: Delimiters = Delimiters {
    pair: " | ",
    key: b"=",
};

/// Returns the text after `[rank N] LEVEL`.
fn message(text: &str) -> Option<&str> {
    let (rank, rest) = text.strip_prefix("[rank ")?.split_once(']')?;
    rank.parse::<u32>().ok()?;
    let (_, message) = rest.strip_prefix(' ')?.split_once(' ')?;
    Some(message.trim_ascii_start())
}

/// Returns the step number and the rest of the message.
fn step(message: &str) -> Option<(i64, &str)> {
    let (step, rest) = step_text(message)?;
    Some((step.parse().ok()?, rest))
}

fn step_text(message: &str) -> Option<(&str, &str)> {
    let (step, rest) = message.strip_prefix("[step ")?.split_once(']')?;
    Some((step, rest.strip_prefix(' ')?))
}

/// Returns the factor of a unit that the logger prints: `1,129`, `0.2%`, `1.57s`, `80GB`, and `1.5M` for 1,500,000.
fn factor(unit: &str) -> Option<f64> {
    match unit {
        "" | "%" | "s" | "GB" => Some(1.0),
        "k" => Some(1e3),
        "M" => Some(1e6),
        "B" => Some(1e9),
        _ => None,
    }
}

/// Parses a size in GB.
fn size(text: &str) -> FieldValue<'_> {
    scaled(number_text::with_suffix(text), text)
}

/// Returns a number multiplied by the factor of its unit, or the text if it is not a number.
fn scaled<'l>(number: Option<(f64, &str)>, text: &'l str) -> FieldValue<'l> {
    let number = number.and_then(|(number, unit)| Some(number * factor(unit)?));
    number.map_or(FieldValue::parse(text), FieldValue::Number)
}

fn gpu_memory(usage: &str) -> Vec<Field<'_>> {
    let (usage, percent) = usage.split_once(" (").unwrap_or((usage, ""));
    let parts = usage.split([',', '/']).filter_map(|part| {
        let (size, name) = part.trim().split_once(' ')?;
        Some((name.into(), self::size(size)))
    });
    let percent = percent
        .strip_suffix("%)")
        .map(|percent| ("%".into(), FieldValue::parse(percent)));
    parts.chain(percent).collect()
}

fn parameters(message: &str) -> Option<f64> {
    number_text::any(message.strip_prefix("Model: ")?.strip_suffix(" parameters")?)
}

fn coverage_table() -> Vec<CoverageRow> {
    let rules = coverage_rules! {
        CoverageRow::step("step", "line");
        "loss/<dataset>" => metric::DATA_LOSS.name, "as it is, by `data.name`";
        "data/<dataset>/tokens" =>
            metric::DATA_CONSUMED_TOKENS.name, "increase since the previous value, by `data.name`";
        "Training config" => event::RUN_CONFIG.name, "one event";
        "Starting training, Training complete, checkpoints, Shutdown requested" =>
            event::RUN_MESSAGE.name, "one event a line";
    };
    RecordTable::coverage_of(&[&STEP, &GPU_MEMORY, &MODEL], rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::sampled::{Sampled, check};

    const CASES: &str = "
## a coloured line of a step
[rank 0] INFO     \x1b[1m[step 10]\x1b[0m \x1b[36mloss\x1b[0m=6.8125 | lr=3.00e-04 | grad_norm=2.547 | tok/s=1,129 | \
mfu=46.6% | mem=41.5/80GB | step_time=0.23s
-> train.throughput.tokens 1129, train.mfu 0.466, memory.framework.limit 80GiB, points 10, spans 0

## lines about experts and memory are not steps
[rank 0] INFO     [step 1] moe/aux_loss=1.0164 | moe/router_z_loss=1.9297 | moe/expert_balance=0.6111
[rank 0] INFO     [step 1] GPU mem: 1.5GB allocated, 3.5GB peak, 5.5GB reserved / 80.0GB total (4%)
[rank 0] INFO     [step 1] loss/wiki=2.5 | data/wiki/tokens=1.5M | moe/novel=3
-> moe.z_loss 1.9297, memory.framework.utilization 0.04, data.consumed_tokens 1.5e6, train.custom 3, train.global_step
";

    #[test]
    fn lines_have_their_values() {
        check(&FORMAT, CASES);
    }

    #[test]
    fn unrelated_rank_lines_are_not_parsed() {
        for line in [
            "[rank 0] INFO     TensorBoard writer → tb_dense",
            "[rank x] INFO [step 1] a=1",
            "[step 1] loss=2",
        ] {
            assert_eq!(KempnerForge::signature(line), None, "{line}");
            assert_eq!(
                Sampled::read(&FORMAT, &format!("{line}\n")).counts.records,
                0,
                "{line}"
            );
        }
    }
}
