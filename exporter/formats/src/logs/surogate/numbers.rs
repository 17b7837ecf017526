//! Parses records of numbers, which are nearly all of a log: steps, evaluations, gauges of GPUs, and unknown kinds.

use super::{
    record::{self, OwnedValue, Value},
    tables,
};
use crate::logs::time;
use pulsetrain_mapping::{Field, FieldTable, FieldValue};
use pulsetrain_record::LoggedTime;

/// A record of numbers.
#[derive(Debug)]
pub(super) struct Numbers<'a> {
    pub(super) kind: Kind,
    /// The kind in the words of the log.
    pub(super) name: &'a str,
    pub(super) time: LoggedTime,
    /// The step; 0 if the record has none.
    pub(super) step: i64,
    /// The number of the GPU of the gauges.
    pub(super) gpu: i64,
    /// The text that distinguishes records of its kind, such as the phase of a step.
    pub(super) label: Option<&'a str>,
    /// The numbers in the order of the log. Of a key that occurs twice, the first counts as step, time or label.
    pub(super) numbers: Vec<Field<'a>>,
    /// The fields that are no numbers.
    pub(super) others: Vec<(String, OwnedValue)>,
}

/// The kind of a record of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Kind {
    Step,
    Eval,
    Moe,
    Gpu,
    Dataset,
    Sol,
    #[default]
    Unknown,
}

impl Kind {
    /// Returns the kind with this name in the log, or `None` if such records are events.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "step" => Self::Step,
            "eval" => Self::Eval,
            "moe" => Self::Moe,
            "gpu" => Self::Gpu,
            "dataset" => Self::Dataset,
            "sol" => Self::Sol,
            "cmd" | "option" | "info" | "gpu-model" | "allocator" | "abs-maxes" => return None,
            _ => Self::Unknown,
        })
    }

    pub(super) fn rows(self) -> &'static FieldTable {
        match self {
            Self::Step => &tables::STEP,
            Self::Eval => &tables::EVAL,
            Self::Moe => &tables::MOE,
            Self::Gpu => &tables::GPU,
            Self::Dataset => &tables::DATASET,
            Self::Sol => &tables::SOL,
            Self::Unknown => &tables::UNKNOWN,
        }
    }

    /// Returns the key of the label.
    fn label(self) -> &'static str {
        match self {
            Self::Step => "phase",
            Self::Gpu => "throttle",
            Self::Dataset => "split",
            Self::Eval | Self::Moe | Self::Sol | Self::Unknown => "",
        }
    }
}

impl<'a> Numbers<'a> {
    /// Parses `{"log": "step", "time": "2026-11-21 00:18:40.989703631", "step": 5, "epoch": 0.25, ...}`. Returns `None` for any
    /// other record, and for more than one.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        Self::parse_as(Kind::of(record::kind(text)?)?, text)
    }

    /// Parses a record of a known kind.
    pub(super) fn parse_as(kind: Kind, text: &'a str) -> Option<Self> {
        let (mut name, mut time, mut step, mut gpu, mut label) = (None, None, None, None, None);
        let mut numbers = Vec::with_capacity(32);
        let mut others = Vec::new();
        let len = record::each_field(text, |key, value, _| match (key, value) {
            ("log", Value::Text(text)) if name.is_none() => name = Some(text),
            ("time", Value::Text(text)) if time.is_none() => time = time::logged(text),
            ("step", Value::Int(number)) if step.is_none() => step = Some(number),
            ("id", value) if kind == Kind::Gpu && gpu.is_none() => {
                gpu = Some(value.as_f64().unwrap_or_default() as i64);
            }
            // The limits of a GPU are the same on all ranks.
            ("rank", _) if kind == Kind::Sol => {}
            (key, Value::Text(text)) if key == kind.label() && label.is_none() => label = Some(text),
            (key, value) => match value.as_f64() {
                Some(number) => numbers.push((key.into(), FieldValue::Number(number))),
                None => others.push((key.to_owned(), OwnedValue::of(&value))),
            },
        })
        .ok()?;
        (len == text.len()).then_some(Self {
            kind,
            name: name.unwrap_or_default(),
            time: time?,
            step: step.unwrap_or_default(),
            gpu: gpu.unwrap_or_default(),
            label,
            numbers,
            others,
        })
    }

    /// Returns the first number with this key.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        let (_, value) = self.numbers.iter().find(|(name, _)| *name == key)?;
        value.number()
    }
}
