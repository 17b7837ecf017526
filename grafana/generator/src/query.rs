//! Checks PromQL queries against the semantic conventions.

use std::collections::{BTreeMap, BTreeSet};

use promql_parser::{
    label::Matchers,
    parser::{
        self, BinaryExpr, Expr, LabelModifier, VectorSelector,
        token::{T_DIV, T_GTR, T_NEQ},
    },
};
use pulsetrain_semconv::{AttributeKind, Instrument, metric, prometheus_label};

/// Labels that any series may have: those of the target, those promoted from the resource, and those of the join of GPU and
/// run.
const COMMON_LABELS: [&str; 12] = [
    "__name__",
    "job",
    "instance",
    "service_instance_id",
    "host_name",
    "train_run_id",
    "train_run_name",
    "train_attempt",
    "train_rank",
    "train_local_rank",
    "train_world_size",
    "quantile",
];

/// The values that replace Grafana's time variables while a query is checked.
const TIME_VARIABLES: [(&str, &str); 4] = [
    ("$__rate_interval", "5m"),
    ("$__interval", "1m"),
    ("$__range", "1h"),
    ("${__range}", "1h"),
];

/// The metrics and labels that a query may name.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    /// The labels of each metric, without [`COMMON_LABELS`]; `None` if any label is allowed.
    metrics: BTreeMap<String, Option<BTreeSet<String>>>,
}

/// A parsed and checked query.
#[derive(Clone, Debug)]
pub struct Query {
    /// The names of the metrics that it selects, as in Prometheus.
    pub metrics: BTreeSet<String>,
}

impl Default for Vocabulary {
    /// Returns every metric of the registry under its Prometheus name, `target_info`, `up` and `ALERTS`.
    fn default() -> Self {
        let mut metrics: BTreeMap<_, _> = ["target_info", "up", "ALERTS", "ALERTS_FOR_STATE"]
            .map(|name| (name.to_owned(), None))
            .into();
        for metric in metric::ALL {
            let labels: BTreeSet<String> = metric
                .attributes
                .iter()
                .map(|used| prometheus_label(used.attribute.name))
                .collect();
            let name = metric.prometheus_name;
            if metric.instrument == Instrument::Histogram {
                for part in ["sum", "count"] {
                    metrics.insert(format!("{name}_{part}"), Some(labels.clone()));
                }
                let mut bucket = labels.clone();
                bucket.insert("le".to_owned());
                metrics.insert(format!("{name}_bucket"), Some(bucket));
            }
            metrics.insert(name.to_owned(), Some(labels));
        }
        Self { metrics }
    }
}

impl Vocabulary {
    /// Adds a name that is not in the registry, such as that of a recording rule; every label is allowed for it.
    pub fn add(&mut self, name: &str) {
        self.metrics.insert(name.to_owned(), None);
    }

    /// Parses a query and checks its metrics, labels, label values and divisions.
    ///
    /// # Errors
    ///
    /// Returns the problems: a syntax error, a metric or label that no series has, a value that an attribute never has, or a
    /// division by a value that can be zero. Guard a divisor with `> 0` or `clamp_min(..., 1)`.
    pub fn check(&self, text: &str) -> Result<Query, Vec<String>> {
        let mut parsed = text.to_owned();
        for (variable, value) in TIME_VARIABLES {
            parsed = parsed.replace(variable, value);
        }
        let expression = parser::parse(&parsed).map_err(|error| vec![format!("{error}, in `{text}`")])?;
        let mut check = Check {
            vocabulary: self,
            metrics: BTreeSet::new(),
            labels: COMMON_LABELS.map(str::to_owned).into(),
            any_label: false,
            used: BTreeSet::new(),
            errors: Vec::new(),
        };
        check.visit(&expression);
        check.finish()
    }
}

/// The state of the check of one query.
struct Check<'a> {
    vocabulary: &'a Vocabulary,
    metrics: BTreeSet<String>,
    /// Labels that at least one series of the query has.
    labels: BTreeSet<String>,
    any_label: bool,
    /// Labels that groupings and joins use.
    used: BTreeSet<String>,
    errors: Vec<String>,
}

impl Check<'_> {
    fn finish(mut self) -> Result<Query, Vec<String>> {
        if !self.any_label {
            for label in self.used.difference(&self.labels) {
                self.errors
                    .push(format!("no metric of the query has a label `{label}`"));
            }
        }
        if self.errors.is_empty() {
            Ok(Query {
                metrics: self.metrics,
            })
        } else {
            Err(self.errors)
        }
    }

    fn visit(&mut self, expression: &Expr) {
        match expression {
            Expr::Aggregate(aggregate) => {
                self.modifier(aggregate.modifier.as_ref());
                if let Some(param) = &aggregate.param {
                    self.visit(param);
                }
                self.visit(&aggregate.expr);
            }
            Expr::Unary(unary) => self.visit(&unary.expr),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Paren(paren) => self.visit(&paren.expr),
            Expr::Subquery(subquery) => self.visit(&subquery.expr),
            Expr::VectorSelector(selector) => self.selector(selector),
            Expr::MatrixSelector(matrix) => self.selector(&matrix.vs),
            Expr::Call(call) => {
                if matches!(call.func.name, "label_replace" | "label_join")
                    && let Some(Expr::StringLiteral(label)) =
                        call.args.args.get(1).map(|argument| &**argument)
                {
                    self.labels.insert(label.val.clone());
                }
                call.args.args.iter().for_each(|argument| self.visit(argument));
            }
            Expr::NumberLiteral(_) | Expr::StringLiteral(_) | Expr::Extension(_) => {}
        }
    }

    fn binary(&mut self, binary: &BinaryExpr) {
        if let Some(modifier) = &binary.modifier {
            self.modifier(modifier.matching.as_ref());
            if let Some(labels) = modifier.card.labels() {
                self.used.extend(labels.labels.iter().cloned());
            }
        }
        if binary.op.id() == T_DIV && !is_guarded(&binary.rhs) {
            self.errors.push(format!(
                "division by `{}`, which can be 0; write `({} > 0)` or `clamp_min(..., 1)`",
                binary.rhs, binary.rhs
            ));
        }
        self.visit(&binary.lhs);
        self.visit(&binary.rhs);
    }

    fn modifier(&mut self, modifier: Option<&LabelModifier>) {
        if let Some(LabelModifier::Include(labels)) = modifier {
            self.used.extend(labels.labels.iter().cloned());
        }
    }

    fn selector(&mut self, selector: &VectorSelector) {
        let Some(name) = &selector.name else {
            self.errors
                .push(format!("`{selector}` selects by labels alone; name the metric"));
            return;
        };
        let Some(labels) = self.vocabulary.metrics.get(name) else {
            self.errors.push(format!(
                "no metric `{name}` in the semantic conventions or the recording rules"
            ));
            return;
        };
        self.metrics.insert(name.clone());
        match labels {
            None => self.any_label = true,
            Some(labels) => {
                self.labels.extend(labels.iter().cloned());
                self.matchers(name, labels, &selector.matchers);
            }
        }
    }

    fn matchers(&mut self, name: &str, labels: &BTreeSet<String>, matchers: &Matchers) {
        for matcher in matchers
            .matchers
            .iter()
            .chain(matchers.or_matchers.iter().flatten())
        {
            let label = matcher.name.as_str();
            if !labels.contains(label) && !COMMON_LABELS.contains(&label) {
                self.errors.push(format!("`{name}` has no label `{label}`"));
            }
            if let Some(values) = values_of(label) {
                // Variables and regular expressions other than alternatives are checked by the test against real data.
                let mut alternatives = matcher.value.split('|');
                let is_plain = |value: &str| value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if matcher.value.is_empty() || !matcher.value.split('|').all(is_plain) {
                    continue;
                }
                if let Some(unknown) = alternatives.find(|value| !values.contains(value)) {
                    self.errors.push(format!(
                        "`{label}` is never `{unknown}`; the conventions have {}",
                        values.join(", ")
                    ));
                }
            }
        }
    }
}

/// Returns the values of a label whose attribute has a closed set of them. Enums with `_OTHER` have further values.
fn values_of(label: &str) -> Option<&'static [&'static str]> {
    pulsetrain_semconv::attribute::ALL
        .iter()
        .find(|attribute| prometheus_label(attribute.name) == label)
        .and_then(|attribute| match attribute.kind {
            AttributeKind::Enum(values) => Some(values).filter(|values| !values.contains(&"_OTHER")),
            _ => None,
        })
}

/// Returns whether a divisor cannot be 0: a number, a filter for values above 0, or a lower bound.
fn is_guarded(divisor: &Expr) -> bool {
    match divisor {
        Expr::NumberLiteral(number) => number.val != 0.0,
        Expr::Paren(paren) => is_guarded(&paren.expr),
        Expr::Binary(binary) => {
            matches!(binary.op.id(), T_GTR | T_NEQ)
                && matches!(&*binary.rhs, Expr::NumberLiteral(number) if number.val >= 0.0)
        }
        Expr::Call(call) => {
            call.func.name == "clamp_min"
                && matches!(call.args.args.last().map(|argument| &**argument),
                    Some(Expr::NumberLiteral(number)) if number.val > 0.0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(query: &str) -> String {
        match Vocabulary::default().check(query) {
            Ok(_) => String::new(),
            Err(errors) => errors.join("; "),
        }
    }

    #[test]
    fn a_query_of_known_names_returns_its_metrics() {
        let query = "sum by (train_run_id) (rate(train_step_duration_seconds_sum{train_run_id=~\"$run\"}[$__rate_interval]))";
        let query = Vocabulary::default().check(query).unwrap();
        assert_eq!(Vec::from_iter(query.metrics), ["train_step_duration_seconds_sum"]);
    }

    #[test]
    fn unknown_metrics_labels_and_label_values_are_errors() {
        assert!(errors("train_los").contains("no metric `train_los`"));
        assert!(errors("train_loss{gpu_index=\"0\"}").contains("`train_loss` has no label `gpu_index`"));
        assert!(errors("sum by (gpu_indx) (gpu_power_watts)").contains("label `gpu_indx`"));
        assert!(errors("gpu_throttle_active{gpu_throttle_reason=\"hot\"}").contains("is never `hot`"));
        assert!(errors("{train_rank=\"0\"}").contains("name the metric"));
        assert!(errors("rate(train_loss").contains("in `rate(train_loss`"));
    }

    #[test]
    fn a_divisor_needs_a_guard() {
        assert!(errors("train_loss / train_perplexity").contains("which can be 0"));
        for query in [
            "train_loss / 2",
            "train_loss / (train_perplexity > 0)",
            "train_loss / clamp_min(train_perplexity, 1)",
        ] {
            assert_eq!(errors(query), "", "{query}");
        }
    }

    #[test]
    fn added_recording_rule_name_is_accepted() {
        let mut vocabulary = Vocabulary::default();
        vocabulary.add("train:step_time:rate5m");
        assert!(
            vocabulary
                .check("train:step_time:rate5m{train_run_id=\"a\"}")
                .is_ok()
        );
    }
}
