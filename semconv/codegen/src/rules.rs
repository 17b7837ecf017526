//! The rules of the vocabulary. No files are generated from a registry that violates one.
//!
//! An entry whose name comes from elsewhere may be exempted from a rule by the rule's id
//! (`annotations.naming_conventions.policy_exceptions`); an exception that is not needed is itself a violation.

mod aggregation;
mod instrument;
mod metric_unit;
mod name;
mod presence;
mod prometheus;
mod reference;

use std::fmt;

use crate::definition::{Definition, DefinitionKind};
use crate::grammar::MetricDef;
use crate::registry::Registry;

/// A rule that an entry breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's id.
    pub rule: &'static str,
    /// The file in the registry.
    pub file: String,
    /// The line of the entry's name in the file, from 1.
    pub line: u64,
    /// The kind and the name of the entry.
    pub entry: String,
    /// The description of the problem, and the fix.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rule,
            file,
            line,
            entry,
            message,
        } = self;
        write!(f, "{file}:{line}: {entry}: {message} [{rule}]")
    }
}

/// A function that finds the violations of one rule.
type Finder = fn(&Registry) -> Vec<Finding<'_>>;

/// Every rule by its id, in the order in which they are checked.
const FINDERS: &[(&str, Finder)] = &[
    ("name_grammar", name::grammar),
    ("duplicate_name", name::duplicates),
    ("namespace_collision", name::namespace_collisions),
    ("brief", presence::brief),
    ("stability", presence::stability),
    ("requirement_level", presence::requirement_level),
    ("source", presence::source),
    ("ucum_unit", metric_unit::ucum),
    ("ratio_unit", metric_unit::ratio),
    ("value_type", instrument::value_type),
    ("counter_name", instrument::counter_name),
    ("duration_histogram", instrument::duration_histogram),
    ("buckets", instrument::buckets),
    ("state_set", instrument::state_set),
    ("aggregation", aggregation::fits),
    ("additive_attributes", aggregation::additive_attributes),
    ("unknown_reference", reference::unknown),
    ("unused_attribute", reference::unused),
    ("unbounded_attribute", reference::unbounded),
    ("enum_members", reference::enum_members),
    ("prometheus_name", prometheus::equal_names),
];

/// The id of the rule about unneeded exceptions, which is checked after all others.
const NEEDLESS_EXCEPTION: &str = "needless_exception";

/// The ids of all rules.
pub fn rule_ids() -> impl Iterator<Item = &'static str> {
    FINDERS.iter().map(|(rule, _)| *rule).chain([NEEDLESS_EXCEPTION])
}

/// Checks every rule; an empty list means that the registry follows all of them.
pub fn check(registry: &Registry) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut excepted = Vec::new();
    for (rule, find) in FINDERS {
        for finding in find(registry) {
            if finding.has_exception_for(rule) {
                excepted.push((finding.kind, finding.name, *rule));
            } else {
                violations.push(finding.violates(rule));
            }
        }
    }
    for definition in registry.definitions() {
        for rule in &definition.annotations.naming_conventions.policy_exceptions {
            if !excepted.contains(&(definition.kind, &definition.name.value, rule.as_str())) {
                let message = format!("does not break the rule `{rule}`; take the exception out");
                violations.push(Finding::new(definition, message).violates(NEEDLESS_EXCEPTION));
            }
        }
    }
    violations
}

/// Finds the metrics that have a problem.
fn metrics_with<T: Into<String>>(
    registry: &Registry,
    problem: impl Fn(&MetricDef) -> Option<T>,
) -> Vec<Finding<'_>> {
    let mut findings = Vec::new();
    for entry in &registry.metrics {
        if let Some(message) = problem(&entry.def) {
            findings.push(Finding::new(entry.into(), message.into()));
        }
    }
    findings
}

/// A violation, before its rule and its exceptions are applied.
struct Finding<'a> {
    kind: DefinitionKind,
    domain: &'a str,
    name: &'a str,
    line: u64,
    exceptions: &'a [String],
    message: String,
}

impl<'a> Finding<'a> {
    fn new(definition: Definition<'a>, message: String) -> Self {
        Self {
            kind: definition.kind,
            domain: definition.domain,
            name: &definition.name.value,
            line: definition.name.referenced.line(),
            exceptions: &definition.annotations.naming_conventions.policy_exceptions,
            message,
        }
    }

    fn has_exception_for(&self, rule: &str) -> bool {
        self.exceptions.iter().any(|exception| exception == rule)
    }

    fn violates(self, rule: &'static str) -> Violation {
        Violation {
            rule,
            file: format!("{}.yaml", self.domain),
            line: self.line,
            entry: format!("{} {}", self.kind.word(), self.name),
            message: self.message,
        }
    }
}
