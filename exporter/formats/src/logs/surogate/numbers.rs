//! The numbers of a record, which are nearly all of a log: steps, evaluations, gauges of GPUs, and unknown kinds.

use super::{
    record::{Record, RecordValue},
    tables,
};
use pulsetrain_mapping::{Field, FieldTable, FieldValue};

/// The fields of a record of numbers by their use.
#[derive(Debug)]
pub(super) struct Numbers<'r, 'a> {
    pub(super) kind: NumberKind,
    pub(super) record: &'r Record<'a>,
    /// The number of the GPU of the gauges.
    pub(super) gpu: i64,
    /// The text that distinguishes records of its kind, such as the phase of a step.
    pub(super) label: Option<&'a str>,
    /// The numbers in the order of the log. Of a key that occurs twice, the first counts as label or GPU.
    pub(super) numbers: Vec<Field<'a>>,
    /// The fields that are not numbers.
    pub(super) others: Vec<&'r (&'a str, RecordValue<'a>)>,
}

/// The kind of a record of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum NumberKind {
    Step,
    Eval,
    Moe,
    Gpu,
    Dataset,
    Sol,
    #[default]
    Unknown,
}

impl NumberKind {
    /// Returns the kind with this name in the log, or `None` if such records are events.
    pub(super) fn from_name(name: &str) -> Option<Self> {
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

impl<'r, 'a> Numbers<'r, 'a> {
    /// Sorts the fields of a record of this kind.
    pub(super) fn new(kind: NumberKind, record: &'r Record<'a>) -> Self {
        let (mut gpu, mut label) = (None, None);
        let mut numbers = Vec::with_capacity(record.fields.len());
        let mut others = Vec::new();
        for field in &record.fields {
            match field {
                ("id", value) if kind == NumberKind::Gpu && gpu.is_none() => {
                    gpu = Some(value.as_f64().unwrap_or_default() as i64);
                }
                // The limits of a GPU are the same on all ranks.
                ("rank", _) if kind == NumberKind::Sol => {}
                (key, RecordValue::Text(text)) if *key == kind.label() && label.is_none() => {
                    label = Some(*text);
                }
                (key, value) => match value.as_f64() {
                    Some(number) => numbers.push(((*key).into(), FieldValue::Number(number))),
                    None => others.push(field),
                },
            }
        }
        Self {
            kind,
            record,
            gpu: gpu.unwrap_or_default(),
            label,
            numbers,
            others,
        }
    }

    /// Returns the first number with this key.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        let (_, value) = self.numbers.iter().find(|(name, _)| *name == key)?;
        value.number()
    }
}
