//! A problem: its subject, the cause, and the remedy.

use std::{borrow::Cow, error::Error, fmt};

/// A problem with its remedy, for an operator.
///
/// It is defined here because `pipeline` is the lowest crate that sources, stages, sinks and the agent share: deliveries,
/// the ledger and the reports of sources and sinks carry problems to the agent. The errors of a library are its own enum;
/// the caller converts those of the crates below. The parts stay apart up to the terminal: only [`Display`](fmt::Display)
/// joins them, and no reader searches the text for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// The subject, such as a URL or a path; `None` if the context names it.
    pub subject: Option<String>,
    /// The cause: what failed, and where.
    pub what: String,
    /// The remedy, if it is known.
    pub remedy: Option<Cow<'static, str>>,
}

impl Problem {
    /// Creates a problem without a subject and a remedy.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            ..Self::default()
        }
    }

    /// Sets the subject.
    #[must_use]
    pub fn about(self, subject: impl Into<String>) -> Self {
        Self {
            subject: Some(subject.into()),
            ..self
        }
    }

    /// Sets the remedy.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<Cow<'static, str>>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// Returns the problem with `context` before the cause: `context: what`.
    #[must_use]
    pub fn within(self, context: impl fmt::Display) -> Self {
        Self {
            what: format!("{context}: {}", self.what),
            ..self
        }
    }

    /// Returns whether the problem has no text.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Joins the parts: `http://collector:4318: HTTP status 404; check the path`.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(subject) = &self.subject {
            write!(f, "{subject}: ")?;
        }
        f.write_str(&self.what)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl Error for Problem {}

impl From<String> for Problem {
    fn from(what: String) -> Self {
        Self::new(what)
    }
}

impl From<&str> for Problem {
    fn from(what: &str) -> Self {
        Self::new(what)
    }
}

impl From<&Self> for Problem {
    fn from(problem: &Self) -> Self {
        problem.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_joins_the_parts_that_are_known() {
        let problem = Problem::new("HTTP status 404");
        assert_eq!(problem.to_string(), "HTTP status 404");
        let problem = problem.about("http://a").with_remedy("check the path");
        assert_eq!(problem.to_string(), "http://a: HTTP status 404; check the path");
        assert!(Problem::new("").is_empty());
    }
}
