//! Parses MaxText's standard error and output (`src/maxtext/common/metric_logger.py`, `utils/max_utils.py`), with absl's prefix
//! and, from older releases, without.
//!
//! A step is printed while the next one runs, so its time is late by up to one step. [`evals`] parses the lines of
//! evaluations, [`memory`] those about memory, [`goodput`] those about goodput, [`distillation`] those of a
//! distillation, [`facts`] single facts. [`metrics_file`] parses the JSON lines, and [`entries`] the entries of the goodput
//! recorder.

mod distillation;
pub(super) mod entries;
mod evals;
mod facts;
mod goodput;
mod memory;
pub(super) mod metrics_file;

use pulsetrain_mapping::{
    CoverageRow, Field, MetricMapper, RecordMeta, RecordTable, coverage_rules, record_option,
};
use pulsetrain_otlp::{UnixNanos, write::AttributeValue as Out};
use pulsetrain_semconv::{attribute, event};

use super::delimited::Delimiters;
use super::lines::{self, Line, LineFormat};
use super::{LogFormat, RunHeader, absl, literal, spans};
use memory::MemoryLines;
use pulsetrain_record::{LoggedTime, Recorder};

/// The row of MaxText's text in the table of formats.
pub(super) const FORMAT: LogFormat = LogFormat {
    name: "maxtext",
    brief: "standard error or output of MaxText",
    framework: "maxtext",
    identify,
    coverage: coverage_table,
    ..lines::row::<MaxText>()
};

/// The rows of a line with "completed step:".
static STEP: RecordTable = RecordTable::new("maxtext", "step");

const CONFIG: &str = "Config param ";
const SYSTEM: &str = "System Information: ";

/// The beginnings of the lines in which the backend names the devices.
const BACKEND: [&str; 2] = ["TFRT ", "Built on "];

/// The beginnings of lifecycle messages.
const MESSAGES: [&str; 11] = [
    "Aborting training due to ",
    "Training stopped: ",
    "Early stop and exit loop ",
    "Starting eval after train step ",
    "Started an asynchronous checkpoint save for step ",
    "Saved a checkpoint at step ",
    "Restored from checkpoint step ",
    "restoring from this run's directory step ",
    "No existing checkpoints found, ",
    "Checkpointing disabled, ",
    "Elastic ",
];

fn identify(head: &[u8]) -> RunHeader {
    let text = String::from_utf8_lossy(head);
    let name = text.split_once("Config param run_name: ").map(|(_, rest)| rest);
    let name = name.and_then(|rest| rest.split_once('\n'));
    let name = name.map(|(name, _)| name.trim());
    RunHeader {
        // The configuration is sorted by name, so the run's name comes late.
        is_partial: name.is_none() && text.contains(CONFIG) && !text.contains("completed step: "),
        run_name: name.filter(|name| !name.is_empty()).map(str::to_owned),
        ..lines::identify::<MaxText>(head)
    }
}

/// Parses MaxText's lines.
#[derive(Debug, Default)]
struct MaxText {
    fields: MetricMapper,
    memory: MemoryLines,
    /// The time of the last line that has one. Lines without a time that follow belong to it.
    last_time: Option<UnixNanos>,
}

impl LineFormat for MaxText {
    fn signature(text: &str) -> Option<&'static str> {
        let text = without_level(text);
        let (file, text) = absl::file_and_text(text).unwrap_or(("", text));
        if file == "pyconfig.py" && text.starts_with(CONFIG) {
            return Some("a configuration that pyconfig.py printed");
        }
        match step_line(text) {
            Some((_, rest)) if rest.contains("loss: ") => Some("lines with \"completed step:\" and a loss"),
            _ if evals::parts(text).is_some() => Some("lines of evaluations as MaxText prints them"),
            _ if text.starts_with(" Total TFLOPs: ") => Some("the line \"Total TFLOPs:\""),
            _ => None,
        }
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let text = without_level(line.text);
        let prefixed = absl::split(text, line.near_unix_nanos());
        let (own_time, text) = prefixed.map_or((None, text), |(prefix, text)| {
            (
                Some(recorder.instant(LoggedTime::Local(prefix.local_unix_nanos))),
                text,
            )
        });
        self.last_time = own_time.or(self.last_time);
        let meta = |step| line.meta_at(self.last_time.unwrap_or_else(|| line.read_time()), step);
        if let Some((step, rest)) = step_line(text) {
            let ends_here = own_time.is_some() || line.is_live();
            let meta = meta(Some(step));
            self.step(meta, rest, ends_here, recorder);
        } else if let Some((step, values)) = evals::parts(text) {
            let fields = numbers(values);
            let meta = meta(step);
            self.fields.record(&evals::ROWS, meta, &fields, &[], recorder);
        } else if let Some(option) = text.strip_prefix(CONFIG) {
            option_event(option, meta(None), recorder);
        } else if let Some(fact) = text.strip_prefix(SYSTEM) {
            let fact = fact.split_once(':').unwrap_or((fact, ""));
            environment_event(fact, meta(None), recorder);
        } else if BACKEND.iter().any(|begin| text.starts_with(begin)) {
            environment_event(("Jax Backend", text), meta(None), recorder);
        } else if let Some(fields) = facts::fields(text) {
            let meta = meta(None);
            self.fields.record(&facts::ROWS, meta, &fields, &[], recorder);
            if let Some(shape) = facts::mesh(text) {
                environment_event(shape, meta, recorder);
            }
        } else if let Some((step, fields)) = goodput::fields(text) {
            let meta = meta(step);
            self.fields.record(&goodput::ROWS, meta, &fields, &[], recorder);
        } else if let Some((step, fields)) = distillation::fields(text) {
            let ends_here = own_time.is_some() || line.is_live();
            let meta = meta(step);
            self.distilled(meta, &fields, ends_here, recorder);
        } else if MESSAGES.iter().any(|begin| text.starts_with(begin)) {
            let body = Some(Out::Text(text));
            recorder.record_event(&event::RUN_MESSAGE, meta(None).time_unix_nanos, body, &[]);
        } else {
            return self.memory.line(text, || meta(None).time_unix_nanos, recorder);
        }
        true
    }
}

impl MaxText {
    fn step(&mut self, meta: RecordMeta, rest: &str, ends_here: bool, recorder: &mut Recorder<'_>) {
        let fields = numbers(rest);
        let (step, time) = (meta.step.unwrap_or_default(), meta.time_unix_nanos);
        self.fields.step(time, step, recorder);
        let spans = self.fields.record(&STEP, meta, &fields, &[], recorder);
        if let Some(duration) = literal::number(&fields, "seconds").filter(|_| ends_here) {
            spans::step(step, time, duration, &spans.step, recorder);
        }
    }

    fn distilled(
        &mut self,
        meta: RecordMeta,
        fields: &[Field<'_>],
        ends_here: bool,
        recorder: &mut Recorder<'_>,
    ) {
        if let Some(step) = meta.step {
            self.fields.step(meta.time_unix_nanos, step, recorder);
        }
        let spans = self
            .fields
            .record(&distillation::ROWS, meta, fields, &[], recorder);
        let duration = literal::number(fields, "step_time").filter(|_| ends_here);
        if let Some((step, duration)) = meta.step.zip(duration) {
            spans::step(step, meta.time_unix_nanos, duration, &spans.step, recorder);
        }
    }
}

/// Strips the prefix of Python's default handler, which logs if absl's is not started.
fn without_level(line: &str) -> &str {
    line.strip_prefix("INFO:absl:").unwrap_or(line)
}

/// Returns the step number and the fields of a line of a step.
fn step_line(text: &str) -> Option<(i64, &str)> {
    let text = text.strip_prefix("[Rampup Batch Size Phase], ").unwrap_or(text);
    let rest = text
        .strip_prefix("completed step: ")
        .or_else(|| text.strip_prefix("completed profiler activation/deactivation step: "))?;
    let (step, rest) = rest.split_once(", ").unwrap_or((rest, ""));
    Some((step.trim().parse().ok()?, rest))
}

/// The delimiters of the lines of steps and evaluations.
const DELIMITERS: Delimiters = Delimiters {
    pair: ", ",
    key: b":=",
};

/// The unit that may follow a number.
const PERCENT: &[&str] = &["%"];

/// The fields of a step, such as `seconds: 0.672, TFLOP/s/device: 0.000, loss: 6.035`, or of an evaluation.
fn numbers(text: &str) -> Vec<Field<'_>> {
    let fields = DELIMITERS.fields(text);
    fields
        .map(|field| (field.key.into(), field.value(PERCENT)))
        .collect()
}

fn option_event(option: &str, meta: RecordMeta, recorder: &mut Recorder<'_>) {
    let (name, value) = option.split_once(':').unwrap_or((option, ""));
    let (value, time) = (Out::Text(value.trim()), meta.time_unix_nanos);
    record_option(name.trim(), value, time, recorder);
}

fn environment_event((name, value): (&str, &str), meta: RecordMeta, recorder: &mut Recorder<'_>) {
    let entries = [(name.trim(), Out::Text(value.trim()))];
    let attributes = [(&attribute::TRAIN_FRAMEWORK, Out::Text("maxtext"))];
    let body = Some(Out::Map(&entries));
    recorder.record_event(&event::RUN_ENVIRONMENT, meta.time_unix_nanos, body, &attributes);
}

fn coverage_table() -> Vec<CoverageRow> {
    let rules = coverage_rules! {
        CoverageRow::step("completed step", "line");
        "Config param" => event::RUN_OPTION.name, "one event an option";
        "System Information, TFRT, Built on" => event::RUN_ENVIRONMENT.name, "one event a line";
        "shape of Num_devices" =>
            event::RUN_ENVIRONMENT.name, "one event, with the number of devices along each axis of the mesh";
        "Aborting training, Training stopped, Early stop, Starting eval, Started an asynchronous checkpoint save, Saved a \
         checkpoint, Restored from checkpoint, restoring from this run's directory, No existing checkpoints found, \
         Checkpointing disabled, Elastic" =>
            event::RUN_MESSAGE.name, "one event a line";
    };
    RecordTable::coverage_of(
        &[
            &STEP,
            &evals::ROWS,
            &facts::ROWS,
            &goodput::ROWS,
            &distillation::ROWS,
        ],
        memory::coverage().into_iter().chain(rules),
    )
}

#[cfg(test)]
mod tests;
