//! A strict parser of Prometheus' exposition formats, written from their specifications and independent of our writer.
//!
//! Text 0.0.4 and 1.0.0 (<https://prometheus.io/docs/instrumenting/exposition_formats/>), OpenMetrics 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>) and `io.prometheus.client.MetricFamily` in protobuf. It rejects
//! everything that a parser of the format may reject: `line` parses the lines of text, `protobuf` the messages, and `check`
//! applies the rules of the type to families. The fuzz targets include this file by its path.

#[path = "exposition/check.rs"]
mod check;
#[path = "exposition/line.rs"]
mod line;
#[path = "exposition/protobuf.rs"]
mod protobuf;

use std::collections::HashSet;

use self::line::{Comment, Line};

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// Text 0.0.4 or 1.0.0.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Delimited protobuf.
    Protobuf,
}

/// A family with its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExposedFamily {
    /// The name in `# TYPE`.
    pub name: String,
    /// The type.
    pub kind: String,
    /// The unit in `# UNIT`.
    pub unit: String,
    /// The samples in their order.
    pub samples: Vec<ExposedSample>,
}

/// A sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExposedSample {
    /// The name.
    pub name: String,
    /// Names and values of labels in their order.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
    /// The labels of its exemplar.
    pub exemplar: Option<Vec<(String, String)>>,
}

/// Parses a page and checks the rules of its format. Without `utf8`, names must be valid in every version of Prometheus.
///
/// # Errors
/// The first violated rule, with the line or the family.
pub fn read_page(page: &[u8], format: Exposition, utf8: bool) -> Result<Vec<ExposedFamily>, String> {
    if format == Exposition::Protobuf {
        return protobuf::read(page, utf8);
    }
    let text = std::str::from_utf8(page).map_err(|error| error.to_string())?;
    if text.contains('\0') {
        return Err("NUL, which Prometheus takes for the end of the page".to_owned());
    }
    let open_metrics = format == Exposition::OpenMetrics;
    let mut reader = Reader {
        open_metrics,
        utf8,
        families: Vec::new(),
        names: HashSet::new(),
        commented: HashSet::new(),
    };
    let body = match (open_metrics, text.strip_suffix("# EOF\n")) {
        (true, Some(body)) => body,
        (true, None) => return Err("there is no # EOF at the end".to_owned()),
        (false, _) => text,
    };
    if !body.is_empty() && !body.ends_with('\n') {
        return Err("the last line has no end".to_owned());
    }
    for (number, line) in body.split_terminator('\n').enumerate() {
        reader
            .line(line)
            .map_err(|error| format!("line {}: {error}: {line:?}", number + 1))?;
    }
    check::families(&reader.families, open_metrics)?;
    Ok(reader.families)
}

struct Reader {
    open_metrics: bool,
    utf8: bool,
    families: Vec<ExposedFamily>,
    names: HashSet<String>,
    /// The comments of the current family so far.
    commented: HashSet<&'static str>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        match line::read(line, self.open_metrics, self.utf8)? {
            Line::Comment { name, comment } => self.comment(name, comment),
            Line::Sample(sample) => {
                let family = self
                    .families
                    .last_mut()
                    .ok_or("a sample before the first family")?;
                if family.kind.is_empty() {
                    return Err("a sample before the type of its family".to_owned());
                }
                family.samples.push(sample);
                Ok(())
            }
        }
    }

    fn comment(&mut self, name: String, comment: Comment) -> Result<(), String> {
        let is_new = self.families.last().is_none_or(|family| family.name != name);
        if is_new {
            if !self.names.insert(name.clone()) {
                return Err("the family was on the page before".to_owned());
            }
            self.commented.clear();
            self.families.push(ExposedFamily {
                name,
                ..ExposedFamily::default()
            });
        }
        let family = self.families.last_mut().ok_or("no family")?;
        if !family.samples.is_empty() {
            return Err("metadata after samples".to_owned());
        }
        if !self.commented.insert(comment.word()) {
            return Err("metadata twice".to_owned());
        }
        match comment {
            Comment::Help => {}
            Comment::Type(kind) => family.kind = kind,
            Comment::Unit(unit) => family.unit = unit,
        }
        Ok(())
    }
}

/// Returns whether every version of Prometheus accepts the name of a metric.
fn is_legacy_name(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    let is_later = |c: char| is_first(c) || c.is_ascii_digit();
    name.starts_with(is_first) && name.chars().all(is_later)
}

/// Returns whether every version of Prometheus accepts the name of a label.
fn is_legacy_label(name: &str) -> bool {
    is_legacy_name(name) && !name.contains(':')
}
