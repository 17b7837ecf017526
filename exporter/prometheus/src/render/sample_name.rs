//! The name of a sample, prepared for writing.

use super::super::escape;

/// A name in both forms of a sample line.
#[derive(Debug)]
pub(super) struct SampleName {
    /// With labels: `gpu_power{` or `{"gpu.power",`.
    with_labels: String,
    /// Without labels: `gpu_power` or `{"gpu.power"}`.
    alone: String,
}

impl SampleName {
    /// Returns the name, in quotes if it has characters that old clients cannot read.
    pub(super) fn new(name: &str) -> Self {
        if escape::is_legacy(name) {
            return Self {
                with_labels: format!("{name}{{"),
                alone: name.to_owned(),
            };
        }
        let quoted = quoted(name);
        Self {
            with_labels: format!("{{{quoted},"),
            alone: format!("{{{quoted}}}"),
        }
    }

    /// Writes name and labels. `extra` is an additional label whose value needs no escaping.
    #[inline]
    pub(super) fn push(&self, labels: &str, extra: Option<(&str, &str)>, out: &mut Vec<u8>) {
        if labels.is_empty() && extra.is_none() {
            out.extend_from_slice(self.alone.as_bytes());
            return;
        }
        out.extend_from_slice(self.with_labels.as_bytes());
        out.extend_from_slice(labels.as_bytes());
        if let Some((name, value)) = extra {
            if !labels.is_empty() {
                out.push(b',');
            }
            [name, "=\"", value, "\""]
                .iter()
                .for_each(|part| out.extend_from_slice(part.as_bytes()));
        }
        out.push(b'}');
    }
}

/// Returns the name for a comment line (`# TYPE`).
pub(super) fn in_comment(name: &str) -> String {
    if escape::is_legacy(name) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

fn quoted(name: &str) -> String {
    let mut quoted = String::from("\"");
    escape::push_escaped(name, &mut quoted);
    quoted.push('"');
    quoted
}
