//! The JSON lines of Surogate's `report_to: surogate` (`surogate/train/metrics_writer.py`): flat objects with a time in
//! seconds, appended and flushed one at a time.

mod tables;

use pulsetrain_otlp::write::Value as Out;
use pulsetrain_semconv::{attribute, event, metric};

use super::{mapping::gpu, tables::GPU};
use crate::logs::{
    Begin, Covered, LogFormat,
    coverage::{self, covered},
    fields::{Field, Fields, Owner, Value, Written},
    lines::{self, Line, LineFormat, LineParser},
    literal,
    row::Row,
    spans,
    template::{Drawing, Drawn, Found, Sketch, Templates},
};
use pulsetrain_record::{Recorder, SkipReason};

/// The row of Surogate's JSON lines in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "surogate-jsonl",
    brief: "surogate_metrics.jsonl of Surogate",
    framework: "surogate",
    shrinks: false,
    splits: false,
    recognise: lines::recognise::<JsonLines>,
    identify: lines::identify::<JsonLines>,
    parser: Begin::Known(|| Box::new(LineParser::<JsonLines>::default())),
    coverage: coverage_table,
};

/// Reads the JSON lines.
#[derive(Debug)]
struct JsonLines {
    lines: Templates<Says>,
    fields: Fields,
}

impl Default for JsonLines {
    fn default() -> Self {
        Self {
            lines: Templates::default(),
            fields: Fields::of("surogate"),
        }
    }
}

impl LineFormat for JsonLines {
    fn sign(text: &str) -> Option<&'static str> {
        let is_ours = text.starts_with('{')
            && text.contains("\"ts\":")
            && ["\"train/", "\"eval/", "\"type\": \"config\"", "\"type\": \"gpu\""]
                .iter()
                .any(|key| text.contains(key));
        is_ours.then_some("JSON lines with \"ts\" and \"train/\" or a \"type\"")
    }

    fn is_whole(text: &str) -> bool {
        text.ends_with('}')
    }

    fn is_begun(text: &str) -> bool {
        text.starts_with('{')
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Some(said) = self.lines.read(line.text, draw) else {
            let message = || "a line is no whole JSON object with \"ts\"".to_owned();
            recorder.skip(SkipReason::MalformedRecord, line.place(), message);
            return false;
        };
        let secs = said.number_at(said.more.secs);
        let written = Written {
            time_unix_nanos: secs.map_or_else(|| line.read_time(), |secs| (secs * 1e9) as u64),
            step: said.number_at(said.more.step).map(|step| step as i64),
            place: line.place(),
        };
        recorder.skip_values(SkipReason::NotMeasured, said.more.nulls);
        match said.more.kind {
            Kind::Config => config(said, written, recorder),
            Kind::Gpu => gauges(&mut self.fields, said, written, recorder),
            Kind::Step => step(&mut self.fields, said, written, recorder),
        }
        true
    }
}

/// What a line says of itself, by the places of its fields.
#[derive(Debug, Default, PartialEq)]
struct Says {
    kind: Kind,
    secs: Option<usize>,
    step: Option<usize>,
    /// Whether it tells of training.
    is_train: bool,
    duration_ms: Option<usize>,
    eval_duration_ms: Option<usize>,
    phase: Option<usize>,
    gpu: Option<usize>,
    throttle: Option<usize>,
    /// How many values are missing.
    nulls: u64,
}

impl Says {
    /// Of a key that comes twice, the first counts.
    fn of(line: &Sketch<Self>, nulls: u64) -> Self {
        let kind = line.text_at(line.place("type")).map_or(Kind::Step, Kind::of);
        Self {
            kind,
            secs: line.place("ts"),
            step: line.place("step"),
            is_train: line.fields.iter().any(|field| field.key.starts_with("train/")),
            duration_ms: line.place("train/duration_ms"),
            eval_duration_ms: line.place("eval/duration_ms"),
            phase: line.place("train/phase"),
            gpu: line.place("gpu_id"),
            throttle: line.place("throttle"),
            // A setting without a value is none.
            nulls: if kind == Kind::Config { 0 } else { nulls },
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Kind {
    Config,
    Gpu,
    /// Of a step or an evaluation.
    #[default]
    Step,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "config" => Self::Config,
            "gpu" => Self::Gpu,
            _ => Self::Step,
        }
    }

    /// The table by which values are recorded.
    fn rows(self) -> &'static [Row] {
        match self {
            Self::Gpu => GPU,
            Self::Config | Self::Step => tables::STEP,
        }
    }

    /// Whether a field is no value.
    fn is_apart(self, key: &str) -> bool {
        match key {
            "ts" | "step" | "type" => true,
            "gpu_id" | "throttle" => matches!(self, Self::Gpu),
            "train/phase" => matches!(self, Self::Step),
            _ => false,
        }
    }
}

/// `{"step": 3, "ts": 1795220321.5, "train/loss": 6.36434, ...}`.
fn draw(text: &str) -> Option<Sketch<Says>> {
    JsonLines::sign(text)?;
    let mut drawing = Drawing::of(text, Says::default());
    let mut nulls = 0;
    literal::each_value(text, |key, value, text| match value {
        Some(value) => drawing.value(&key, value, text),
        None => nulls += 1,
    })?;
    let says = Says::of(drawing.sketch(), nulls);
    let kind = says.kind;
    *drawing.more() = says;
    Some(drawing.finish_without(kind.rows(), |key| kind.is_apart(key)))
}

fn step(known: &mut Fields, said: &Sketch<Says>, written: Written, recorder: &mut Recorder<'_>) {
    let (time, says) = (written.time_unix_nanos, &said.more);
    if let Some(step) = written.step.filter(|_| says.is_train) {
        known.step(time, step, recorder);
    }
    if let Some(phase) = said.text_at(says.phase) {
        recorder.record_state(&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE, time, phase, &[]);
    }
    let on_span = known.record_sketch(said, None, written, recorder);
    let step = written.step.unwrap_or_default();
    if let Some(ms) = said.number_at(says.duration_ms) {
        spans::step(step, time, ms / 1e3, on_span, recorder);
    }
    if let Some(ms) = said.number_at(says.eval_duration_ms) {
        spans::eval(step, time, ms / 1e3, on_span, recorder);
    }
}

fn gauges(known: &mut Fields, said: &Sketch<Says>, written: Written, recorder: &mut Recorder<'_>) {
    let index = said.number_at(said.more.gpu).unwrap_or_default() as i64;
    let id = index.to_string();
    let attributes = gpu::attributes(&id, index);
    if let Some(reason) = said.text_at(said.more.throttle) {
        gpu::record_throttle(reason, written.time_unix_nanos, &attributes, recorder);
    }
    let owner = Owner {
        number: index,
        attributes: &attributes,
    };
    known.record_sketch_of(owner, said, written, recorder);
}

fn config(said: &Sketch<Says>, written: Written, recorder: &mut Recorder<'_>) {
    let is_value = |drawn: &&Drawn| !matches!(drawn.found, Found::Apart);
    let fields = said.fields.iter().filter(is_value);
    let fields: Vec<Field<'_>> = fields.map(|drawn| said.field(drawn)).collect();
    let entries: Vec<(&str, Out<'_>)> = fields
        .iter()
        .map(|(key, value)| match value {
            Value::Number(number) => (key.as_ref(), Out::Double(*number)),
            Value::Text(text) => (key.as_ref(), Out::Text(text)),
        })
        .collect();
    let attributes = [(&attribute::TRAIN_FRAMEWORK, Out::Text("surogate"))];
    let body = Some(Out::Map(&entries));
    recorder.record_event(&event::RUN_CONFIG, written.time_unix_nanos, body, &attributes);
}

fn coverage_table() -> Vec<Covered> {
    let rules = [
        covered(
            "step",
            metric::TRAIN_GLOBAL_STEP.name,
            "as it is; `train.steps` grows by the steps since the line before",
        ),
        covered(
            "train/phase",
            metric::TRAIN_PHASE.name,
            "the state set is in this state",
        ),
        covered(
            "throttle",
            metric::GPU_THROTTLE_ACTIVE.name,
            "the state set is in this state",
        ),
        covered(
            "type config",
            event::RUN_CONFIG.name,
            "one event with all options",
        ),
    ];
    let mut all = coverage::tables(&[tables::STEP, GPU]);
    all.extend(rules);
    all
}

#[cfg(test)]
mod tests;
