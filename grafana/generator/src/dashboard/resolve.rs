//! Checks definitions and turns them into the model that the writers read.

use std::collections::{BTreeMap, BTreeSet};

use pulsetrain_semconv::{AttributeKind, attribute};

use super::{
    definition::{
        Annotation, DashboardDefinition, Limits, Number, PanelDefinition, PanelKind, QueryDefinition,
        Variable,
    },
    histogram,
    layout::{self, Position},
    model::{Color, Dashboard, Link, Panel, PanelQuery, Row, Step},
    traceql,
    unit::{NONE, Unit},
};
use crate::{DefinitionError, Thresholds, Vocabulary};

/// The placeholder of one value of an attribute in the query of a state timeline.
const STATE: &str = "$state";

/// Resolves definitions, and collects their errors.
pub(crate) struct Resolver<'a> {
    thresholds: &'a Thresholds,
    vocabulary: &'a Vocabulary,
    variables: &'a BTreeMap<String, Variable>,
    annotations: &'a BTreeMap<String, Annotation>,
    /// The uid of each dashboard by the name of its file.
    uids: &'a BTreeMap<String, String>,
    /// The file and the entry that are being resolved.
    file: String,
    entry: String,
    /// The variables that queries of the current dashboard use.
    used: BTreeSet<String>,
    pub(crate) errors: Vec<DefinitionError>,
}

impl<'a> Resolver<'a> {
    /// Creates a resolver.
    pub(crate) fn new(
        thresholds: &'a Thresholds,
        vocabulary: &'a Vocabulary,
        variables: &'a BTreeMap<String, Variable>,
        annotations: &'a BTreeMap<String, Annotation>,
        uids: &'a BTreeMap<String, String>,
    ) -> Self {
        Self {
            thresholds,
            vocabulary,
            variables,
            annotations,
            uids,
            file: String::new(),
            entry: String::new(),
            used: BTreeSet::new(),
            errors: Vec::new(),
        }
    }

    /// Resolves a dashboard. Errors are added to `errors`; the result is valid only if there are none.
    pub(crate) fn dashboard(&mut self, name: &str, definition: &DashboardDefinition) -> Dashboard {
        self.file = format!("dashboards/{name}.yaml");
        self.entry.clear();
        self.used.clear();
        self.require(&definition.title, "title");
        self.require(&definition.description, "description");
        let mut keys = BTreeSet::new();
        let rows = definition
            .rows
            .iter()
            .map(|row| {
                let (positions, height) = layout::flow(&row.panels);
                let panels = row.panels.iter().zip(positions);
                Row {
                    title: row.title.clone(),
                    height,
                    panels: panels
                        .map(|(panel, position)| self.panel(panel, position, &mut keys))
                        .collect(),
                }
            })
            .collect();
        self.entry = "annotations".to_owned();
        let annotations = self.annotations(&definition.annotations);
        self.entry = "variables".to_owned();
        let variables = self.variables(&definition.variables);
        Dashboard {
            name: name.to_owned(),
            uid: definition.uid.clone(),
            title: definition.title.clone(),
            description: self.substitute(definition.description.trim()),
            variables,
            annotations,
            rows,
        }
    }

    fn error(&mut self, message: impl std::fmt::Display) {
        self.errors
            .push(DefinitionError::new(&self.file, &self.entry, message));
    }

    fn require(&mut self, text: &str, key: &str) {
        if text.trim().is_empty() {
            self.error(format!(
                "`{key}` is empty; every dashboard and every panel needs one"
            ));
        }
    }

    fn panel(&mut self, panel: &PanelDefinition, position: Position, keys: &mut BTreeSet<String>) -> Panel {
        self.entry.clone_from(&panel.title);
        self.require(&panel.title, "title");
        self.require(&panel.description, "description");
        let key = key(&panel.title);
        if !keys.insert(key.clone()) {
            self.error("another panel of the dashboard has this title");
        }
        let states = self.states(panel);
        let unit = self.unit(&panel.unit);
        self.check_kind(panel);
        Panel {
            key,
            title: panel.title.clone(),
            description: self.substitute(panel.description.trim()),
            kind: panel.kind,
            unit,
            queries: panel
                .queries
                .iter()
                .map(|query| self.query(panel.kind, query, unit, &states))
                .collect(),
            steps: self.steps(panel.thresholds.as_ref()),
            min: panel.min,
            max: panel.max,
            position,
            link: panel.link.as_deref().and_then(|name| self.link(name)),
            states,
            columns: panel.columns.clone(),
            text: panel.text.clone().unwrap_or_default(),
            data: panel.data.clone(),
        }
    }

    /// Checks that a panel has what its kind needs.
    fn check_kind(&mut self, panel: &PanelDefinition) {
        let kind = panel.kind;
        let without_values = matches!(
            kind,
            PanelKind::Text | PanelKind::Traces | PanelKind::StateTimeline
        );
        if without_values != (panel.unit == "none") {
            self.error(
                "`unit` is `none` for text, traces and states, and the unit of the values for all others",
            );
        }
        if (kind == PanelKind::Text) != panel.queries.is_empty() {
            self.error("a text has no queries; every other panel has at least one");
        }
        if (kind == PanelKind::Text) != panel.text.is_some() {
            self.error("`text` is the text of a panel of the kind `text`, which needs one");
        }
        if kind == PanelKind::Gauge && panel.max.is_none() {
            self.error("a gauge needs `max`");
        }
        if (kind == PanelKind::Table) == panel.columns.is_empty() {
            self.error("`columns` are the labels of a table, which has at least one");
        }
        if panel.states.is_some() && kind != PanelKind::StateTimeline {
            self.error("`states` belongs to the kind `state_timeline`");
        }
        if panel.queries.first().is_some_and(|query| query.fallback) {
            self.error("the first query cannot be a `fallback`");
        }
    }

    fn states(&mut self, panel: &PanelDefinition) -> Vec<&'static str> {
        let Some(name) = &panel.states else {
            return Vec::new();
        };
        let attribute = attribute::ALL.iter().find(|attribute| attribute.name == name);
        match attribute.map(|attribute| attribute.kind) {
            Some(AttributeKind::Enum(values)) => values.to_vec(),
            _ => {
                self.error(format!(
                    "`states`: no attribute `{name}` with a closed set of values"
                ));
                Vec::new()
            }
        }
    }

    fn unit(&mut self, ucum: &str) -> &'static Unit {
        Unit::from_ucum(ucum).unwrap_or_else(|| {
            self.error(format!(
                "no unit `{ucum}`; write one of the registry, or add it to unit.rs"
            ));
            &NONE
        })
    }

    fn query(
        &mut self,
        kind: PanelKind,
        query: &QueryDefinition,
        unit: &'static Unit,
        states: &[&'static str],
    ) -> PanelQuery {
        let expr = histogram::expression(query).unwrap_or_else(|error| {
            self.error(error);
            String::new()
        });
        let expr = self.substitute(&expr);
        let expr = if states.is_empty() {
            expr
        } else {
            each_state(&expr, states)
        };
        self.use_variables(&expr);
        let mut metrics = BTreeSet::new();
        if kind == PanelKind::Traces {
            traceql::check(&expr)
                .into_iter()
                .for_each(|error| self.error(error));
        } else {
            metrics = self.check(&expr);
        }
        PanelQuery {
            expr,
            legend: query.legend.clone(),
            exemplar: query.exemplar,
            fallback: query.fallback,
            unit: query.unit.as_deref().map_or(unit, |unit| self.unit(unit)),
            metrics,
        }
    }

    /// Checks a query in PromQL and returns the names of its metrics.
    fn check(&mut self, expr: &str) -> BTreeSet<String> {
        match self.vocabulary.check(expr) {
            Ok(query) => query.metrics,
            Err(errors) => {
                errors.into_iter().for_each(|error| self.error(error));
                BTreeSet::new()
            }
        }
    }

    fn substitute(&mut self, text: &str) -> String {
        self.thresholds.substitute(text).unwrap_or_else(|error| {
            self.error(error);
            text.to_owned()
        })
    }

    fn steps(&mut self, limits: Option<&Limits>) -> Vec<Step> {
        let (levels, is_above) = match limits {
            None => return Vec::new(),
            Some(Limits::Above(levels)) => (levels, true),
            Some(Limits::Below(levels)) => (levels, false),
        };
        let warning = levels.warning.as_ref().and_then(|number| self.number(number));
        let critical = levels.critical.as_ref().and_then(|number| self.number(number));
        let colored = |value: Option<f64>, color| value.map(|value| (value, color));
        let steps: Vec<Step> = if is_above {
            ascending(
                Color::Good,
                [
                    colored(warning, Color::Warning),
                    colored(critical, Color::Critical),
                ],
            )
        } else {
            let (lowest, above_critical) = match (critical, warning) {
                (Some(_), Some(_)) => (Color::Critical, Color::Warning),
                (Some(_), None) => (Color::Critical, Color::Good),
                (None, _) => (Color::Warning, Color::Good),
            };
            ascending(
                lowest,
                [colored(critical, above_critical), colored(warning, Color::Good)],
            )
        };
        if steps.len() < 2 || !steps.is_sorted_by(|a, b| a.from < b.from) {
            self.error("`thresholds` need `warning`, `critical` or both, with `critical` the worse one");
        }
        steps
    }

    fn number(&mut self, number: &Number) -> Option<f64> {
        match number {
            Number::Value(value) => Some(*value),
            Number::Reference(text) => {
                let value = self.substitute(text).parse().ok();
                if value.is_none() {
                    self.error(format!(
                        "`{text}` is not a number; write one, or ${{threshold.NAME}}"
                    ));
                }
                value
            }
        }
    }

    fn link(&mut self, name: &str) -> Option<Link> {
        let Some(uid) = self.uids.get(name) else {
            self.error(format!("`link`: no file dashboards/{name}.yaml"));
            return None;
        };
        Some(Link {
            name: name.to_owned(),
            uid: uid.clone(),
        })
    }

    fn annotations(&mut self, names: &[String]) -> Vec<(String, Annotation)> {
        let mut annotations = Vec::new();
        for name in names {
            let Some(annotation) = self.annotations.get(name) else {
                self.error(format!("no annotation `{name}` in annotations.yaml"));
                continue;
            };
            self.check(&annotation.expr);
            self.use_variables(&annotation.expr);
            annotations.push((name.clone(), annotation.clone()));
        }
        annotations
    }

    /// Resolves the variables. Each must be used by a query or by another variable.
    fn variables(&mut self, names: &[String]) -> Vec<(String, Variable)> {
        let mut variables = Vec::new();
        for name in names {
            let Some(variable) = self.variables.get(name) else {
                self.error(format!("no variable `{name}` in variables.yaml"));
                continue;
            };
            match (&variable.values, &variable.of, &variable.text) {
                (Some(_), Some(of), None) => {
                    self.check(of);
                    self.use_variables(of);
                }
                (None, None, Some(_)) => {}
                _ => self.error(format!("`{name}` needs `values` and `of`, or `text`")),
            }
            let name = variable.name.as_ref().unwrap_or(name);
            variables.push((name.clone(), variable.clone()));
        }
        let declared: BTreeSet<String> = variables.iter().map(|(name, _)| name.clone()).collect();
        let undeclared: Vec<_> = self.used.difference(&declared).cloned().collect();
        let unused: Vec<_> = declared.difference(&self.used).cloned().collect();
        for name in undeclared {
            self.error(format!(
                "a query uses `${name}`; add it to the variables of the dashboard"
            ));
        }
        for name in unused {
            self.error(format!("no query uses `${name}`; remove it"));
        }
        variables
    }

    fn use_variables(&mut self, expr: &str) {
        for after in expr.split('$').skip(1) {
            let name = after.strip_prefix('{').unwrap_or(after);
            let end = name
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(name.len());
            let name = &name[..end];
            // Grafana's and Perses' own variables begin with two underscores; `$1` is a group of a regular expression.
            if !name.is_empty() && !name.starts_with("__") && !name.starts_with(|c: char| c.is_ascii_digit())
            {
                self.used.insert(name.to_owned());
            }
        }
    }
}

/// Returns the color below all values, then the color from each value on.
fn ascending(lowest: Color, rest: [Option<(f64, Color)>; 2]) -> Vec<Step> {
    let first = Step {
        from: None,
        color: lowest,
    };
    let rest = rest.into_iter().flatten().map(|(value, color)| Step {
        from: Some(value),
        color,
    });
    std::iter::once(first).chain(rest).collect()
}

/// Repeats a query for each state, with the number of the state as its value. If several states hold, the last one wins.
fn each_state(expr: &str, states: &[&str]) -> String {
    let one = |(index, state): (usize, &&str)| format!("{} * {}", expr.replace(STATE, state), index + 1);
    let parts: Vec<_> = states.iter().enumerate().rev().map(one).collect();
    parts.join(" or ")
}

/// Returns a title as an identifier, such as `loss_by_attempt`.
fn key(title: &str) -> String {
    let words = title
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("_")
}
