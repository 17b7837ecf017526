//! The JSON lines of Surogate's `report_to: surogate` (`surogate/train/metrics_writer.py`): flat objects with a time in
//! seconds, appended and flushed one at a time.

mod tables;

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, event, metric};

use super::mapping::gpu::{GPU, THROTTLE};
use crate::{
    Recorder, SkipReason,
    emptied::emptied,
    logs::{
        Begin, Covered, LogFormat,
        coverage::{self, covered},
        fields::{Field, Fields, Value, Written},
        lines::{self, Line, LineFormat, LineParser},
        literal::{self, Objects},
        spans,
    },
};

/// The row of Surogate's JSON lines in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "surogate-jsonl",
    brief: "surogate_metrics.jsonl of Surogate",
    framework: "surogate",
    shrinks: false,
    recognise: lines::recognise::<JsonLines>,
    identify: lines::identify::<JsonLines>,
    parser: Begin::Known(|| Box::new(LineParser::<JsonLines>::default())),
    coverage: coverage_table,
};

/// Reads the JSON lines.
#[derive(Debug)]
struct JsonLines {
    objects: Objects,
    fields: Fields,
    /// The room that the fields of the newest line took.
    room: Vec<Field<'static>>,
}

impl Default for JsonLines {
    fn default() -> Self {
        Self {
            objects: Objects::signed(Self::sign),
            fields: Fields::of("surogate"),
            room: Vec::new(),
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
        let mut fields = emptied(std::mem::take(&mut self.room));
        let Some(object) = self.objects.read(line.text, &mut fields) else {
            let message = || "a line is no whole JSON object with \"ts\"".to_owned();
            recorder.skip(SkipReason::MalformedRecord, line.place(), message);
            return false;
        };
        let head = Head::take(&mut fields);
        let written = Written {
            time_unix_nanos: head
                .secs
                .map_or_else(|| line.read_time(), |secs| (secs * 1e9) as u64),
            step: head.step.map(|step| step as i64),
            place: line.place(),
        };
        // A setting without a value is none.
        if !matches!(head.kind, Kind::Config) {
            recorder.skip_values(SkipReason::NotMeasured, object.nulls);
        }
        match head.kind {
            Kind::Config => config(&fields, written, recorder),
            Kind::Gpu => gpu(&mut self.fields, &mut fields, written, recorder),
            Kind::Step => step(&mut self.fields, &mut fields, written, recorder),
        }
        self.room = emptied(fields);
        true
    }
}

/// What a line says of itself.
#[derive(Default)]
struct Head {
    secs: Option<f64>,
    step: Option<f64>,
    kind: Kind,
}

#[derive(Clone, Copy, Default)]
enum Kind {
    Config,
    Gpu,
    /// Of a step or an evaluation.
    #[default]
    Step,
}

impl Head {
    /// Takes it from the fields. Of a key that comes twice, the first counts.
    fn take(fields: &mut Vec<Field<'_>>) -> Self {
        let mut head = Self::default();
        let mut is_known = [false; 3];
        fields.retain(|(key, value)| {
            let place = match key.as_ref() {
                "ts" => 0,
                "step" => 1,
                "type" => 2,
                _ => return true,
            };
            if !std::mem::replace(&mut is_known[place], true) {
                match (place, value) {
                    (0, value) => head.secs = value.number(),
                    (1, value) => head.step = value.number(),
                    (_, Value::Text(kind)) => head.kind = Kind::of(kind),
                    _ => {}
                }
            }
            false
        });
        head
    }
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "config" => Self::Config,
            "gpu" => Self::Gpu,
            _ => Self::Step,
        }
    }
}

fn step(known: &mut Fields, fields: &mut Vec<Field<'_>>, written: Written, recorder: &mut Recorder<'_>) {
    let time = written.time_unix_nanos;
    let (mut duration, mut eval_duration, mut phase) = (None, None, None);
    let mut is_train = false;
    for (number, (key, value)) in fields.iter().enumerate() {
        is_train = is_train || key.starts_with("train/");
        match key.as_ref() {
            "train/duration_ms" => duration = duration.or(Some(value.number())),
            "eval/duration_ms" => eval_duration = eval_duration.or(Some(value.number())),
            "train/phase" => phase = phase.or(Some(number)),
            _ => {}
        }
    }
    let (duration, eval_duration) = (duration.flatten(), eval_duration.flatten());
    if let Some(step) = written.step.filter(|_| is_train) {
        known.step(time, step, recorder);
    }
    if let Some(place) = phase {
        if let Value::Text(phase) = &fields[place].1 {
            recorder.record_state(&metric::TRAIN_PHASE, &attribute::TRAIN_PHASE, time, phase, &[]);
        }
        fields.retain(|(key, _)| key != "train/phase");
    }
    let on_span = known.record(tables::STEP, written, fields, &[], recorder);
    let step = written.step.unwrap_or_default();
    if let Some(ms) = duration.filter(|_| is_train) {
        spans::step(step, time, ms / 1e3, on_span, recorder);
    }
    if let Some(ms) = eval_duration {
        spans::eval(step, time, ms / 1e3, on_span, recorder);
    }
}

fn gpu(known: &mut Fields, fields: &mut Vec<Field<'_>>, written: Written, recorder: &mut Recorder<'_>) {
    let index = literal::number(fields, "gpu_id").unwrap_or_default() as i64;
    let id = index.to_string();
    let gpu: [Attribute<'_>; 2] = [
        (&attribute::GPU_ID, Out::Text(&id)),
        (&attribute::GPU_INDEX, Out::Int(index)),
    ];
    if let Some(theirs) = literal::text(fields, "throttle") {
        let reason = THROTTLE
            .iter()
            .find(|(known, _)| *known == theirs)
            .map_or(theirs, |(_, ours)| ours);
        let (metric, attribute) = (&metric::GPU_THROTTLE_ACTIVE, &attribute::GPU_THROTTLE_REASON);
        recorder.record_state(metric, attribute, written.time_unix_nanos, reason, &gpu);
    }
    fields.retain(|(key, _)| key != "gpu_id" && key != "throttle");
    known.record(GPU, written, fields, &gpu, recorder);
}

fn config(fields: &[Field<'_>], written: Written, recorder: &mut Recorder<'_>) {
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
mod tests {
    use super::*;
    use crate::logs::sampled::Sampled;

    #[test]
    fn configuration_steps_and_gpus_are_told_apart() {
        let read = Sampled::read(
            &FORMAT,
            "{\"type\": \"config\", \"ts\": 1795220320.5, \"lr\": 0.0002, \"model\": \"m\"}\n\
             {\"step\": 3, \"ts\": 1795220321.5, \"train/loss\": NaN, \"train/duration_ms\": 120, \"train/phase\": \"warmup\", \"turn/novel\": 2}\n\
             {\"type\": \"gpu\", \"step\": 3, \"gpu_id\": 1, \"ts\": 1795220321.6, \"power\": 350000, \"throttle\": \"no cap\"}\n",
        );
        assert!(read.values("train.loss")[0].is_nan());
        assert_eq!(read.values("gpu.power"), [350.0]);
        assert_eq!(read.values("train.custom"), [2.0]);
        assert_eq!(
            (read.counts.events, read.counts.spans, read.counts.records),
            (1, 1, 3)
        );
        assert!(!read.skipped.has_losses());
    }

    #[test]
    fn the_keys_of_reinforcement_learning_are_known() {
        let read = Sampled::read(
            &FORMAT,
            "{\"step\": 1, \"ts\": 1.5, \"train/policy_loss\": 0.1, \"train/mismatch_kl\": 0.2, \"train/is_masked\": 0.25, \
             \"train/is_masked_low\": 0.2, \"train/teacher_kl\": 0.3, \"train/keep_tokens\": 10, \"train/total_tokens\": 12, \
             \"train/micro_batches\": 4, \"train/vtc\": 9, \"train/expected_loss_scale\": 1.0, \"train/orch_step\": 7}",
        );
        assert_eq!(read.values("rl.policy_loss"), [0.1]);
        assert_eq!(read.values("train.custom"), [0.2, 7.0]);
        assert_eq!((read.counts.points, read.skipped.counts().count()), (13, 0));
    }
}
