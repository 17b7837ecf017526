//! The layout of Perfetto traces: the attributes that are shown, those that group spans into rows, and those that name
//! processes.

use std::path::PathBuf;

use pulsetrain_pipeline::Problem;
use pulsetrain_to_perfetto::{AttributePolicy, PerfettoConfig};
use serde::Deserialize;

use super::{
    fault::ValueError,
    quantity::Size,
    section::{Setting, Shown, section},
};

section! {
    /// How Perfetto traces are drawn, by the sinks perfetto and flight_recorder and by convert --config. The defaults
    /// fit the telemetry of Pulsetrain; other programs use other names.
    pub(crate) struct DrawingSection {
        /// The span attributes in the trace: lean (those that people read), full (ids too, so that the trace can be
        /// converted back), or a list of names.
        attributes: Attributes = Attributes(AttributePolicy::Lean),
        /// Spans are grouped into rows of their process by the value of the first of these attributes that they have. Other
        /// spans are on the row of their parent, else on the row of their scope.
        rows: Vec<String> = PerfettoConfig::default().rows,
        /// The resource attributes that name a process; the first one that is present is used.
        process_names: Vec<String> = PerfettoConfig::default().process_names,
        /// The resource attributes that are appended to the name of a process.
        process_labels: Vec<String> = PerfettoConfig::default().process_labels,
        /// Whether the buckets of histograms are also drawn, as one counter per bound.
        buckets: bool = false,
        /// The memory limit; data above it is spilled to temporary files.
        memory: Size = Size(PerfettoConfig::default().memory_bytes),
        /// The folder of temporary files. Default: $TMPDIR, or /tmp.
        temporary_folder: Option<String> = None,
    }
}

impl DrawingSection {
    /// Returns the settings of the mapper.
    pub(crate) fn settings(&self) -> PerfettoConfig {
        PerfettoConfig {
            attributes: self.attributes.0.clone(),
            rows: self.rows.clone(),
            process_names: self.process_names.clone(),
            process_labels: self.process_labels.clone(),
            buckets: self.buckets,
            memory_bytes: self.memory.0,
            temporary: self.temporary_folder.as_ref().map(PathBuf::from),
            ..PerfettoConfig::default()
        }
    }
}

/// The span attributes that a trace shows: `lean`, `full`, or names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "AttributesValue")]
pub(crate) struct Attributes(pub(crate) AttributePolicy);

#[derive(Deserialize)]
#[serde(untagged)]
enum AttributesValue {
    Word(String),
    Names(Vec<String>),
}

impl TryFrom<AttributesValue> for Attributes {
    type Error = ValueError;

    fn try_from(written: AttributesValue) -> Result<Self, ValueError> {
        match written {
            AttributesValue::Word(word) => Self::try_from(word.as_str()),
            AttributesValue::Names(names) => Self::of_names(names.iter().map(String::as_str)),
        }
    }
}

impl TryFrom<&str> for Attributes {
    type Error = ValueError;

    /// Parses `lean`, `full`, or comma-separated names.
    fn try_from(text: &str) -> Result<Self, ValueError> {
        match text {
            "lean" => Ok(Self(AttributePolicy::Lean)),
            "full" => Ok(Self(AttributePolicy::Full)),
            names => Self::of_names(names.split(',')),
        }
    }
}

impl Attributes {
    fn of_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self, ValueError> {
        let names: Vec<String> = names
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        if names.is_empty() {
            return Err(ValueError(
                Problem::new("must not be empty").with_remedy("write lean, full or names of attributes"),
            ));
        }
        Ok(Self(AttributePolicy::Only(names)))
    }
}

impl Setting for Attributes {
    fn shown(&self) -> Shown {
        match &self.0 {
            AttributePolicy::Lean => Shown::Scalar("lean".to_owned()),
            AttributePolicy::Full => Shown::Scalar("full".to_owned()),
            AttributePolicy::Only(names) => names.shown(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perfetto_attributes_setting_is_a_keyword_or_a_list_of_names() {
        let only = |names: [&str; 2]| AttributePolicy::Only(names.map(str::to_owned).to_vec());
        for (text, policy) in [
            ("attributes: full", AttributePolicy::Full),
            ("attributes: lean", AttributePolicy::Lean),
            ("attributes: [train.loss, a.b]", only(["train.loss", "a.b"])),
            ("attributes: train.loss, a.b", only(["train.loss", "a.b"])),
        ] {
            let section: DrawingSection = serde_saphyr::from_str(text).unwrap();
            assert_eq!(section.settings().attributes, policy, "{text}");
        }
        assert!(
            Attributes::try_from(" , ")
                .unwrap_err()
                .to_string()
                .contains("lean")
        );
    }
}
