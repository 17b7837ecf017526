//! A fault of a configuration file: the place, the reason, and the remedy.

use std::fmt;

use pulsetrain_pipeline::Problem;
use serde_saphyr::Error;

use super::spanned::Location;

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The file.
    pub(crate) file: String,
    /// The place in the file; zero for a fault of the complete file.
    pub(crate) location: Location,
    /// The reason and the remedy.
    pub(crate) problem: Problem,
    /// Whether an agent that starts waits for the missing file instead of ending.
    pub(crate) is_awaited: bool,
}

impl Fault {
    /// Returns a fault without a place in the file.
    pub(crate) fn of_file(file: &str, problem: impl Into<Problem>) -> Self {
        Self::at(file, Location::default(), problem)
    }

    /// Returns a fault at a place: in `file`, unless the place is in an included file.
    pub(crate) fn at(file: &str, location: Location, problem: impl Into<Problem>) -> Self {
        let file = if location.file.is_empty() {
            file
        } else {
            location.file
        };
        Self {
            file: file.to_owned(),
            location,
            problem: problem.into(),
            is_awaited: false,
        }
    }

    /// Returns the file, with the line and the column if they are known.
    pub(crate) fn place(&self) -> String {
        let Self { file, location, .. } = self;
        match location.line {
            0 => file.clone(),
            line => format!("{file}:{line}:{}", location.column),
        }
    }

    /// Returns the error of the YAML reader about `text`, reworded if the reader's message is unclear.
    pub(super) fn of_yaml(file: &str, text: &str, error: &Error) -> Self {
        let error = error.without_snippet();
        let location = error.location().map_or_else(Location::default, |at| Location {
            line: at.line(),
            column: at.column(),
            ..Location::default()
        });
        Self::at(file, location, words(error, word_at(text, location)))
    }
}

/// Returns the reworded message. `given` is the word at the place: the reader itself reports none after a variable.
fn words(error: &Error, given: &str) -> Problem {
    match error {
        Error::SerdeUnknownField { expected, .. } => {
            Problem::new(format!("unknown key {given:?}")).with_remedy(nearest(given, expected))
        }
        Error::SerdeUnknownVariant { expected, .. } => {
            Problem::new(format!("unknown name {given:?}")).with_remedy(nearest(given, expected))
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or_default();
            Problem::new(format!("duplicate key {key}")).with_remedy("keep one")
        }
        Error::InvalidScalar { ty: "boolean", .. } => {
            Problem::new("invalid value").with_remedy("write true or false")
        }
        Error::InvalidScalar { .. } => {
            Problem::new("invalid value").with_remedy("write a number in digits, like 1000")
        }
        other => {
            let of_value = match other {
                Error::Message { msg, .. } => ValueError::parse(msg),
                _ => None,
            };
            of_value.unwrap_or_else(|| plainer(without_place(&other.to_string())))
        }
    }
}

/// The error of a value. The YAML reader passes only the text of an error on, so the text has a control character between
/// the cause and the remedy; a quoted value has none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ValueError(pub(crate) Problem);

impl ValueError {
    const SEPARATOR: char = '\u{1f}';

    /// Returns the problem in the text of an error, if a value has it.
    fn parse(text: &str) -> Option<Problem> {
        let (what, remedy) = text.split_once(Self::SEPARATOR)?;
        Some(Problem::new(what).with_remedy(remedy.to_owned()))
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { what, remedy, .. } = &self.0;
        write!(
            f,
            "{what}{}{}",
            Self::SEPARATOR,
            remedy.as_deref().unwrap_or_default()
        )
    }
}

/// Returns the word that begins at a place, or an empty string.
fn word_at(text: &str, location: Location) -> &str {
    let line = (location.line as usize)
        .checked_sub(1)
        .and_then(|line| text.lines().nth(line));
    let start = line.and_then(|line| {
        line.char_indices()
            .nth((location.column as usize).checked_sub(1)?)
    });
    let (Some(line), Some((start, _))) = (line, start) else {
        return "";
    };
    let rest = line[start..].trim_start_matches(['"', '\'']);
    let end = rest.find(|character: char| !character.is_alphanumeric() && !"_-".contains(character));
    &rest[..end.unwrap_or(rest.len())]
}

/// Returns the reader's message without the trailing place, which the fault already has.
fn without_place(text: &str) -> String {
    let end = text.rfind(" at line ").unwrap_or(text.len());
    text[..end].to_owned()
}

/// Replaces messages of the reader that are unclear to users of YAML.
fn plainer(words: String) -> Problem {
    let (what, remedy) = match words.as_str() {
        "expected sequence start" => (
            "expected a list",
            "write [one, two], or one item per line after a dash",
        ),
        "expected mapping start" | "externally tagged enum expected scalar or mapping" => {
            ("expected keys", "write them below, indented, one per line")
        }
        words
            if words.ends_with("did not find expected key")
                || words == "expected end of mapping after enum variant value" =>
        {
            (
                "wrong indentation",
                "begin the keys of a section in the same column",
            )
        }
        words if words.starts_with("tabs disallowed") => {
            ("tabs are not allowed", "indent with spaces, two per level")
        }
        "invalid socket address syntax" => ("invalid address", "write it with its port, like 127.0.0.1:9464"),
        _ => return Problem::new(words),
    };
    Problem::new(what).with_remedy(remedy)
}

/// Suggests the nearest known name, or lists all known names.
pub(super) fn nearest(given: &str, known: &[&str]) -> String {
    let distance = |name: &str| strsim::damerau_levenshtein(given, name);
    let near = known.iter().min_by_key(|name| distance(name));
    match near {
        Some(name) if distance(name) <= 1 + given.len() / 4 => format!("did you mean {name:?}?"),
        _ => format!("it can be: {}", known.join(", ")),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.problem)
    }
}
