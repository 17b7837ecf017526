//! Parses Surogate's console: steps, evaluations and GPUs as `csrc/src/runtime/training/logging.cpp` prints them at every
//! verbosity, and the line of reinforcement learning. No line has a time.

mod heading;
mod tables;

use pulsetrain_mapping::{
    CoverageRow, Field, FieldValue, MetricMapper, RecordMeta, RecordTable, coverage_rules, number_text,
};
use pulsetrain_otlp::write::AttributeValue as Out;
use pulsetrain_semconv::{attribute, event, metric};

use self::heading::Heading;
use super::mapping::gpu;
use crate::logs::delimited::Delimiters;
use crate::logs::lines::{self, Line, LineFormat};
use crate::logs::{LogFormat, literal, spans};
use pulsetrain_record::Recorder;

/// The row of Surogate's console in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "surogate-console",
    brief: "standard output of Surogate",
    framework: "surogate",
    coverage: coverage_table,
    ..lines::row::<Console>()
};

const STEP: &str = ":: step";
const EVAL: &str = ">> eval";
const GPU: &str = "[G] step";
const GPU_MORE: &str = "Mem Usage";

/// The delimiters of the line of reinforcement learning.
const GRPO: Delimiters = Delimiters { pair: " ", key: b"=" };

/// Parses the console's lines.
#[derive(Debug, Default)]
struct Console {
    fields: MetricMapper,
    heading: Heading,
    /// The GPU and the step of the previous line, which a second line continues.
    gpu: Option<(i64, Option<i64>)>,
}

impl LineFormat for Console {
    fn signature(text: &str) -> Option<&'static str> {
        if text.starts_with(STEP) && text.contains(" | norm ") {
            Some("lines that begin with \":: step\"")
        } else if text.starts_with(EVAL) && text.contains(" | gap ") {
            // At the lowest verbosity no other line is printed.
            Some("lines that begin with \">> eval\"")
        } else if grpo(text).is_some() {
            Some("lines with \"step=\", \"grad_norm=\" and \"masked=\"")
        } else {
            None
        }
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let text = line.text;
        if let Some(head) = Head::parse(text) {
            self.step(&head, line.meta(Some(head.step)), line.is_live(), recorder);
        } else if let Some(rest) = text.strip_prefix(EVAL) {
            let fields: Vec<Field<'_>> = parts(rest).filter_map(part).collect();
            self.fields
                .record(&tables::EVAL, line.meta(None), &fields, &[], recorder);
        } else if let Some((gpu, step, rest)) = gpu_line(text) {
            self.gpu = Some((gpu, step));
            self.gpu(gpu, line.meta(step), rest, recorder);
        } else if let Some((gpu, step)) = self.gpu.filter(|_| text.starts_with(GPU_MORE)) {
            self.gpu(gpu, line.meta(step), text, recorder);
        } else if let Some(fields) = grpo(text) {
            self.grpo(&fields, line.meta(None), line.is_live(), recorder);
        } else {
            return self
                .heading
                .line(text, &mut self.fields, || line.meta(None), recorder);
        }
        true
    }
}

impl Console {
    fn step(&mut self, head: &Head<'_>, meta: RecordMeta, is_live: bool, recorder: &mut Recorder<'_>) {
        let time = meta.time_unix_nanos;
        self.fields.step(time, head.step, recorder);
        let percent = ("%".into(), head.percent.clone());
        self.fields.record(&tables::HEAD, meta, &[percent], &[], recorder);
        let step = StepLine::parse(head.rest);
        let spans = self
            .fields
            .record(&tables::STEP, meta, &step.fields, &[], recorder);
        if step.is_spike {
            let kind = [(&attribute::TRAIN_ANOMALY_TYPE, Out::Text("grad_norm_spike"))];
            recorder.record(&metric::TRAIN_ANOMALIES, time, 1.0, &kind);
        }
        if let Some(phase) = step.phase {
            recorder.record_state(&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE, time, phase, &[]);
        }
        if is_live && let Some(duration_ms) = literal::number(&step.fields, "ms") {
            spans::step(head.step, time, duration_ms / 1e3, &spans.step, recorder);
        }
    }

    fn gpu(&mut self, gpu: i64, meta: RecordMeta, text: &str, recorder: &mut Recorder<'_>) {
        let id = gpu.to_string();
        let attributes = gpu::attributes(&id, gpu);
        let fields: Vec<Field<'_>> = text.split('|').map(str::trim).flat_map(gpu_part).collect();
        self.fields
            .record(&tables::GPU, meta, &fields, &attributes, recorder);
    }

    fn grpo(&mut self, fields: &[Field<'_>], meta: RecordMeta, is_live: bool, recorder: &mut Recorder<'_>) {
        let of = |name: &str| literal::number(fields, name);
        let Some(step) = of("step").map(|step| step as i64) else {
            return;
        };
        let meta = RecordMeta {
            step: Some(step),
            ..meta
        };
        self.fields.step(meta.time_unix_nanos, step, recorder);
        let spans = self
            .fields
            .record(&tables::GRPO, meta, &fields[1..], &[], recorder);
        if let Some(secs) = of("time").filter(|_| is_live) {
            spans::step(step, meta.time_unix_nanos, secs, &spans.step, recorder);
        }
    }
}

/// The fields of a line of a step.
#[derive(Debug, Default)]
struct StepLine<'l> {
    fields: Vec<Field<'l>>,
    /// Whether the norm is far above its mean.
    is_spike: bool,
    phase: Option<&'l str>,
}

impl<'l> StepLine<'l> {
    /// Parses `loss 2.1348 | norm !9.7500 | 130.0k tps |   126 ms | sol 68.3 | eta 00h00m | converging`.
    fn parse(text: &'l str) -> Self {
        let mut line = Self::default();
        for text in parts(text) {
            line.is_spike |= text.starts_with("norm") && text.contains('!');
            match part(text) {
                Some(field) => line.fields.push(field),
                None if !text.is_empty() => line.phase = Some(text),
                None => {}
            }
        }
        line
    }
}

/// The beginning of the line of a step.
struct Head<'l> {
    step: i64,
    /// The completed percentage of the epoch.
    percent: FieldValue<'l>,
    /// The rest of the line.
    rest: &'l str,
}

impl<'l> Head<'l> {
    /// Parses `:: step      22 [ 10.0%] \\ loss 2.1348 | ...`. The slash after the bracket shows the trend of the loss.
    fn parse(text: &'l str) -> Option<Self> {
        let (step, rest) = text.strip_prefix(STEP)?.split_once('[')?;
        let (percent, rest) = rest.split_once("%]")?;
        Some(Self {
            step: number_text::count(step.trim_ascii())? as i64,
            percent: FieldValue::parse(percent.trim_ascii()),
            rest: rest.trim_start_matches([' ', '\\', '/']),
        })
    }
}

/// Splits a line such as `loss 2.9659 | gap   +0.5 | 140.0k tps |   234 ms`.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split('|').map(str::trim_ascii)
}

/// Parses `loss 2.1348`, `130.0k tps`, `126 ms` or `eta 00h03m`; `None` for a single word.
fn part(text: &str) -> Option<Field<'_>> {
    let (first, second) = text.split_once(' ')?;
    let second = second.trim_start_matches([' ', '!']);
    Some(if first == "eta" {
        let seconds = hours_and_minutes(second).map(FieldValue::Number);
        (first.into(), seconds.unwrap_or_else(|| FieldValue::parse(second)))
    } else if let Some(number) = thousands(first) {
        (second.into(), FieldValue::Number(number))
    } else {
        (first.into(), FieldValue::parse(second))
    })
}

/// Parses a number with an optional `k`, as in `130.0k`.
fn thousands(text: &str) -> Option<f64> {
    match number_text::with_suffix(text)? {
        (number, "") => Some(number),
        (number, "k") => Some(number * 1e3),
        _ => None,
    }
}

/// Parses `00h03m` to seconds.
fn hours_and_minutes(text: &str) -> Option<f64> {
    let (hours, minutes) = text.strip_suffix('m')?.split_once('h')?;
    Some((number_text::count(hours)? * 60.0 + number_text::count(minutes)?) * 60.0)
}

/// `[G] step     5 [gpu  0] | power  620 W   | temp  61 / 87°C | clock 1755 MHz`.
fn gpu_line(text: &str) -> Option<(i64, Option<i64>, &str)> {
    let (step, rest) = text.strip_prefix(GPU)?.split_once("[gpu")?;
    let (gpu, rest) = rest.split_once(']')?;
    Some((gpu.trim().parse().ok()?, step.trim().parse().ok(), rest))
}

/// Parses a part of a line of a GPU: one number, or a temperature with its limit.
fn gpu_part(text: &str) -> Vec<Field<'_>> {
    let field = |key: &'static str, text: &str| {
        let digits = text.trim().split(' ').next().unwrap_or_default();
        number_text::any(digits).map(|number| (key.into(), FieldValue::Number(number)))
    };
    if let Some(rest) = text.strip_prefix("temp") {
        let (now, limit) = rest.trim_end_matches("°C").split_once('/').unwrap_or((rest, ""));
        return [field("temp", now), field("temp limit", limit)]
            .into_iter()
            .flatten()
            .collect();
    }
    let keys = ["power", "clock", "Mem Usage", "PCI↓", "PCI↑"];
    let found = keys
        .into_iter()
        .find_map(|key| field(key, text.strip_prefix(key)?));
    found.into_iter().collect()
}

/// `step=1 loss=0.5 grad_norm=1.2 lr=1e-6 kl=0.01 masked=3.5% tokens=512 micro_batches=4 vtc=480 expected=1.0 time=2.5s`.
fn grpo(text: &str) -> Option<Vec<Field<'_>>> {
    let text = &text[text.find("step=")?..];
    if !text.contains(" grad_norm=") || !text.contains(" masked=") {
        return None;
    }
    let fields = GRPO
        .fields(text)
        .map(|field| (field.key.into(), field.value(&["%", "s"])));
    Some(fields.collect())
}

fn coverage_table() -> Vec<CoverageRow> {
    let rules = coverage_rules! {
        CoverageRow::step(":: step N", "line");
        "norm !" => metric::TRAIN_ANOMALIES.name, "one more, `train.anomaly.type=grad_norm_spike`";
        "the last word of a step" => metric::TRAIN_PHASE.name, "the state set is in this state";
        "Device N" => event::RUN_GPU_MODEL.name, "one event a GPU";
        "done in N ms" => event::RUN_MESSAGE.name, "one event";
        "tokens of one file" => "(left out: the line of its data set counts them)", "";
    };
    RecordTable::coverage_of(
        &[
            &tables::HEAD,
            &tables::STEP,
            &tables::EVAL,
            &tables::GPU,
            &tables::GRPO,
            &tables::HEADING,
        ],
        rules,
    )
}

#[cfg(test)]
mod tests;
