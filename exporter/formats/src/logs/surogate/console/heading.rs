//! Parses the lines before the first step: devices, data sets and the speed of light, under headings in brackets.

use pulsetrain_mapping::{Field, FieldValue, MetricMapper, RecordMeta, number_text};
use pulsetrain_otlp::write::AttributeValue as Out;
use pulsetrain_semconv::{attribute, event};

use super::tables;
use crate::logs::surogate::mapping::gpu;
use pulsetrain_record::{Recorder, SkipReason};

/// The current heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    None,
    System,
    Dataset,
    SpeedOfLight,
}

/// Parses the lines before the first step.
#[derive(Debug, Default)]
pub(super) struct Heading {
    section: Section,
    /// The device of the previous line.
    device: Option<i64>,
    /// The message of started work: `Loading checkpoint ...`.
    started: Option<String>,
}

impl Heading {
    /// Records a line and returns whether it has a value.
    pub(super) fn line(
        &mut self,
        text: &str,
        fields: &mut MetricMapper,
        meta: impl FnOnce() -> RecordMeta,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        match text.trim() {
            heading if heading.starts_with("[System") => self.section = Section::System,
            "[Dataset]" => self.section = Section::Dataset,
            "[Speed of Light]" => self.section = Section::SpeedOfLight,
            started if started.ends_with(" ...") => self.started = Some(started.to_owned()),
            done if self.started.is_some() && done.starts_with("done in ") => {
                return self.done(done, meta, recorder);
            }
            line => return self.fact(line, fields, meta, recorder),
        }
        false
    }

    /// `done in 10 ms`.
    fn done(&mut self, text: &str, meta: impl FnOnce() -> RecordMeta, recorder: &mut Recorder<'_>) -> bool {
        let ms = text
            .strip_prefix("done in ")
            .and_then(|text| text.strip_suffix(" ms"));
        let (Some(ms), Some(started)) = (ms.and_then(number_text::any), self.started.take()) else {
            return false;
        };
        let duration = [(&attribute::RUN_MESSAGE_DURATION, Out::Double(ms / 1e3))];
        let body = Some(Out::Text(&started));
        recorder.record_event(&event::RUN_MESSAGE, meta().time_unix_nanos, body, &duration);
        true
    }

    fn fact(
        &mut self,
        text: &str,
        fields: &mut MetricMapper,
        meta: impl FnOnce() -> RecordMeta,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let Some((key, value)) = text
            .split_once(':')
            .map(|(key, value)| (key.trim(), value.trim()))
        else {
            return false;
        };
        let facts: Vec<Field<'_>> = match self.section {
            Section::System if key.starts_with("Device ") => {
                return self.device(key, value, meta, recorder);
            }
            Section::System if key == "Memory" => memory(value),
            Section::Dataset if value.ends_with(" tokens") => one(key, tokens(value)),
            Section::Dataset => {
                recorder.skip_value(SkipReason::Ignored("tokens_of_one_file"));
                return false;
            }
            Section::SpeedOfLight => one(key, scaled(value)),
            _ => return false,
        };
        let device = self.device.filter(|_| self.section == Section::System);
        let id = device.map(|index| index.to_string()).unwrap_or_default();
        let attributes = device.map(|index| gpu::attributes(&id, index));
        let attributes = attributes.as_slice().as_flattened();
        fields.record(&tables::HEADING, meta(), &facts, attributes, recorder);
        !facts.is_empty()
    }

    /// `Device 0: NVIDIA H100 80GB HBM3`.
    fn device(
        &mut self,
        key: &str,
        name: &str,
        meta: impl FnOnce() -> RecordMeta,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let Some(index) = key.strip_prefix("Device ").and_then(|index| index.parse().ok()) else {
            return false;
        };
        self.device = Some(index);
        let id = index.to_string();
        let attributes = [
            (&attribute::GPU_ID, Out::Text(&id)),
            (&attribute::GPU_INDEX, Out::Int(index)),
            (&attribute::GPU_NAME, Out::Text(name)),
        ];
        recorder.record_event(&event::RUN_GPU_MODEL, meta().time_unix_nanos, None, &attributes);
        true
    }
}

fn one<'a>(key: &'a str, number: Option<f64>) -> Vec<Field<'a>> {
    let known = tables::HEADING.row(key).is_some();
    number
        .filter(|_| known)
        .map(|number| (key.into(), FieldValue::Number(number)))
        .into_iter()
        .collect()
}

/// `902 MiB / 81106 MiB`.
fn memory(text: &str) -> Vec<Field<'_>> {
    let sizes = text
        .split('/')
        .map(|size| size.trim().strip_suffix(" MiB").and_then(number_text::any));
    let keys = ["Memory used", "Memory limit"];
    keys.into_iter()
        .zip(sizes)
        .filter_map(|(key, size)| Some((key.into(), FieldValue::Number(size?))))
        .collect()
}

/// `2.0M tokens`.
fn tokens(text: &str) -> Option<f64> {
    let (number, suffix) = number_text::with_suffix(text.strip_suffix(" tokens")?)?;
    let factor = match suffix {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "B" | "G" => 1e9,
        _ => return None,
    };
    Some(number * factor)
}

/// `989.4 TFLOP/s`, `3.6 GFLOP   in bf16`, `189789 tok/s`.
fn scaled(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit.trim_start().bytes().next()? {
        b'k' => 1e3,
        b'M' => 1e6,
        b'G' => 1e9,
        b'T' => 1e12,
        b'P' => 1e15,
        _ => 1.0,
    };
    number_text::any(number).map(|number| number * factor)
}
