//! MaxText's standard error and output (`src/maxtext/common/metric_logger.py`, `utils/max_utils.py`), with absl's prefix
//! and, as older releases print, without.
//!
//! A step is printed while the next one runs, so its time is late by up to a step. [`tables`] says what the numbers are,
//! [`memory`] reads the lines about memory, [`goodput`] those about goodput, [`metrics_file`] the JSON lines.

mod goodput;
mod memory;
pub(super) mod metrics_file;
mod tables;

use pulsetrain_otlp::write::Value as Out;
use pulsetrain_semconv::{attribute, event, metric};

use super::{
    Begin, Covered, Identity, LogFormat, absl,
    coverage::{self, covered},
    fields::{Field, Fields, Value, Written},
    lines::{self, Line, LineFormat, LineParser},
    number_text,
    printed::Signs,
    spans,
};
use crate::{Recorder, cut};
use memory::MemoryLines;

/// The row of MaxText's text in the table of formats.
pub(super) const FORMAT: LogFormat = LogFormat {
    name: "maxtext",
    brief: "standard error or output of MaxText",
    framework: "maxtext",
    shrinks: true,
    recognise: lines::recognise::<MaxText>,
    identify,
    parser: Begin::Known(|| Box::new(LineParser::<MaxText>::default())),
    coverage: coverage_table,
};

const CONFIG: &str = "Config param ";
const SYSTEM: &str = "System Information: ";

/// Messages of a run's life.
const MESSAGES: [&str; 2] = [
    "Aborting training due to NaN loss.",
    "Aborting training due to Inf loss.",
];

fn identify(head: &[u8]) -> Identity {
    let text = String::from_utf8_lossy(head);
    let name = text.split_once("Config param run_name: ").map(|(_, rest)| rest);
    let name = name.and_then(|rest| rest.split_once('\n'));
    let name = name.map(|(name, _)| name.trim());
    Identity {
        // The configuration comes in the order of the alphabet, so its name is far down.
        may_grow: name.is_none() && text.contains(CONFIG) && !text.contains("completed step: "),
        run_name: name.filter(|name| !name.is_empty()).map(str::to_owned),
        ..lines::identify::<MaxText>(head)
    }
}

/// Reads MaxText's lines.
#[derive(Debug)]
struct MaxText {
    fields: Fields,
    memory: MemoryLines,
    /// The time of the last line that said one: lines that belong to it follow without.
    last_time: Option<u64>,
}

impl Default for MaxText {
    fn default() -> Self {
        Self {
            fields: Fields::of("maxtext"),
            memory: MemoryLines::default(),
            last_time: None,
        }
    }
}

impl LineFormat for MaxText {
    fn sign(text: &str) -> Option<&'static str> {
        let (file, text) = absl::file_and_text(text).unwrap_or(("", text));
        if file == "pyconfig.py" && text.starts_with(CONFIG) {
            return Some("a configuration that pyconfig.py printed");
        }
        match step_line(text) {
            Some((_, rest)) if rest.contains("loss: ") => Some("lines with \"completed step:\" and a loss"),
            _ if text.starts_with(EVAL_STEP) || text.starts_with(EVAL) => {
                Some("lines with \"Completed eval\"")
            }
            _ if text.starts_with(" Total TFLOPs: ") => Some("the line \"Total TFLOPs:\""),
            _ => None,
        }
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let prefixed = absl::split(line.text, line.near_unix_nanos());
        let (said, text) = prefixed.map_or((None, line.text), |(prefix, text)| {
            (Some(prefix.time_unix_nanos), text)
        });
        self.last_time = said.or(self.last_time);
        let written = |step| Written {
            time_unix_nanos: self.last_time.unwrap_or_else(|| line.read_time()),
            step,
            place: line.place(),
        };
        if let Some((step, rest)) = step_line(text) {
            let ends_here = said.is_some() || line.is_live();
            let written = written(Some(step));
            self.step(written, rest, ends_here, recorder);
        } else if let Some(rest) = text.strip_prefix(EVAL_STEP).or_else(|| text.strip_prefix(EVAL)) {
            let written = written(leading_number(rest));
            self.record(tables::EVAL, written, rest, recorder);
        } else if let Some(option) = text.strip_prefix(CONFIG) {
            option_event(option, written(None), recorder);
        } else if let Some(fact) = text.strip_prefix(SYSTEM) {
            environment_event(fact, written(None), recorder);
        } else if let Some(fields) = facts(text) {
            let written = written(None);
            self.fields.record(tables::RUN, written, &fields, &[], recorder);
        } else if let Some((step, fields)) = goodput::fields(text) {
            let written = written(step);
            self.fields.record(goodput::ROWS, written, &fields, &[], recorder);
        } else if MESSAGES.contains(&text) {
            let body = Some(Out::Text(text));
            recorder.record_event(&event::RUN_MESSAGE, written(None).time_unix_nanos, body, &[]);
        } else {
            return self.memory.line(text, || written(None).time_unix_nanos, recorder);
        }
        true
    }
}

impl MaxText {
    fn step(&mut self, written: Written, rest: &str, ends_here: bool, recorder: &mut Recorder<'_>) {
        let step = written.step.unwrap_or_default();
        self.fields.step(written.time_unix_nanos, step, recorder);
        let fields = numbers(rest);
        let on_span = self.fields.record(tables::STEP, written, &fields, &[], recorder);
        let duration = fields.iter().find(|(key, _)| key == "seconds");
        if let Some(duration) = duration
            .and_then(|(_, value)| value.number())
            .filter(|_| ends_here)
        {
            spans::step(step, written.time_unix_nanos, duration, on_span, recorder);
        }
    }

    fn record(
        &mut self,
        rows: &[super::row::Row],
        written: Written,
        rest: &str,
        recorder: &mut Recorder<'_>,
    ) {
        self.fields.record(rows, written, &numbers(rest), &[], recorder);
    }
}

const EVAL_STEP: &str = "Completed eval step: ";
const EVAL: &str = "Completed eval after train step ";

/// The number of a step and what its line says of it.
fn step_line(text: &str) -> Option<(i64, &str)> {
    let text = text.strip_prefix("[Rampup Batch Size Phase], ").unwrap_or(text);
    let rest = text
        .strip_prefix("completed step: ")
        .or_else(|| text.strip_prefix("completed profiler activation/deactivation step: "))?;
    let (step, rest) = cut::once(rest, ", ").unwrap_or((rest, ""));
    Some((step.trim().parse().ok()?, rest))
}

fn leading_number(text: &str) -> Option<i64> {
    cut::once(text, ",")
        .map_or(text, |(first, _)| first)
        .trim_ascii()
        .parse()
        .ok()
}

/// Of the lines of steps and evaluations.
const SIGNS: Signs = Signs {
    between: ", ",
    within: b":=",
};

/// Fields whose numbers may have a percent sign.
fn numbers(text: &str) -> Vec<Field<'_>> {
    let mut fields = Vec::with_capacity(tables::STEP.len());
    for printed in SIGNS.fields(text) {
        fields.push((printed.key.into(), printed.value(&["%"])));
    }
    fields
}

/// What lines of one fact each say of the run.
fn facts(text: &str) -> Option<Vec<Field<'_>>> {
    let field = |key: &'static str, number: f64| vec![(key.into(), Value::Number(number))];
    let first = |rest: &str, end: &[char]| number_text::any(rest.split(end).next()?.trim());
    if let Some(rest) = text.strip_prefix("number parameters: ") {
        return Some(field("number parameters", first(rest, &[' '])?));
    }
    if let Some(rest) = text.strip_prefix("Num_devices: ") {
        return Some(field("Num_devices", first(rest, &[','])?));
    }
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("Total TFLOPs: ") {
        return Some(field("Total TFLOPs", number_text::any(rest)?));
    }
    let (weights, attention) = text
        .strip_prefix("split as ")?
        .split_once("% learnable weight flops and ")?;
    let mut shares = field("learnable weight flops %", number_text::any(weights)?);
    shares.extend(field("attention flops %", first(attention, &['%'])?));
    Some(shares)
}

fn option_event(option: &str, written: Written, recorder: &mut Recorder<'_>) {
    let (name, value) = option.split_once(':').unwrap_or((option, ""));
    let attributes = [
        (&attribute::RUN_OPTION_NAME, Out::Text(name.trim())),
        (&attribute::RUN_OPTION_VALUE, Out::Text(value.trim())),
    ];
    recorder.record_event(&event::RUN_OPTION, written.time_unix_nanos, None, &attributes);
}

fn environment_event(fact: &str, written: Written, recorder: &mut Recorder<'_>) {
    let (name, value) = fact.split_once(':').unwrap_or((fact, ""));
    let entries = [(name.trim(), Out::Text(value.trim()))];
    let attributes = [(&attribute::TRAIN_FRAMEWORK, Out::Text("maxtext"))];
    let body = Some(Out::Map(&entries));
    recorder.record_event(
        &event::RUN_ENVIRONMENT,
        written.time_unix_nanos,
        body,
        &attributes,
    );
}

fn coverage_table() -> Vec<Covered> {
    let rules = [
        covered(
            "completed step",
            metric::TRAIN_GLOBAL_STEP.name,
            "as it is; `train.steps` grows by the steps since the line before",
        ),
        covered("Config param", event::RUN_OPTION.name, "one event an option"),
        covered(
            "System Information",
            event::RUN_ENVIRONMENT.name,
            "one event a line",
        ),
        covered("Aborting training", event::RUN_MESSAGE.name, "one event"),
    ];
    let mut covered = coverage::tables(&[tables::STEP, tables::EVAL, tables::RUN, goodput::ROWS]);
    covered.extend(memory::coverage().into_iter().chain(rules));
    covered
}

#[cfg(test)]
mod tests;
