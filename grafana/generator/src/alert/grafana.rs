//! Grafana-managed alerts: a file for `provisioning/alerting`.
//!
//! Each rule has three nodes, as Grafana's own import of Prometheus rules writes them: the query, a node that is 1 wherever the
//! query returns a number, and a threshold above 0. A query without a result is normal.
//!
//! Queries and annotations are written as they are: Grafana replaces variables of its environment in the other fields of a
//! provisioning file only (`pkg/services/provisioning/alerting/rules_types.go`: `Model.Raw`, and `Annotations.Raw`, since 2026
//! `ValueWithBracedVars`), so a doubled `$` would stay doubled.

use super::{Alert, GENERATED, Group, Rules, duration};
use crate::{GeneratedFile, yaml::Yaml};

/// Returns the file.
pub(super) fn file(rules: &Rules) -> GeneratedFile {
    let groups = rules.groups.iter().map(|group| {
        let alerts = group.alerts.iter().map(|alert| rule(rules, group, alert));
        Yaml::map([
            ("orgId", Yaml::plain(&1)),
            ("name", Yaml::text(&group.name)),
            ("folder", Yaml::text("Pulsetrain")),
            ("interval", Yaml::text(&group.interval)),
            ("rules", Yaml::List(alerts.collect())),
        ])
    });
    let groups = Yaml::List(groups.collect());
    let text = Yaml::map([("apiVersion", Yaml::plain(&1)), ("groups", groups)]);
    GeneratedFile {
        path: "provisioning/alerting/pulsetrain.yaml".to_owned(),
        text: text.document(GENERATED),
    }
}

fn rule(rules: &Rules, group: &Group, alert: &Alert) -> Yaml {
    let mut rule = vec![
        ("uid", Yaml::text(uid(&alert.name))),
        ("title", Yaml::text(&alert.name)),
        ("condition", Yaml::text("threshold")),
        ("data", Yaml::List(nodes(rules, group, alert))),
        ("noDataState", Yaml::text("OK")),
        ("execErrState", Yaml::text("Error")),
        ("for", Yaml::text(alert.pending.as_deref().unwrap_or("0s"))),
    ];
    if let Some(keep) = &alert.keep_firing_for {
        rule.push(("keepFiringFor", Yaml::text(keep)));
    }
    let annotations = rules.annotations(alert).map(|(name, template)| {
        // In Grafana `$value` is a text about all nodes; the number is that of the query.
        let template = template.replace("$value", "$values.query.Value");
        (name, Yaml::text(template))
    });
    rule.push(("annotations", Yaml::map(annotations)));
    rule.push((
        "labels",
        Yaml::map([("severity", Yaml::text(alert.severity.as_str()))]),
    ));
    rule.push(("isPaused", Yaml::plain(&false)));
    Yaml::map(rule)
}

fn nodes(rules: &Rules, group: &Group, alert: &Alert) -> Vec<Yaml> {
    let datasource = &rules.links.datasource;
    let query = Yaml::map([
        ("refId", Yaml::text("query")),
        ("expr", Yaml::text(alert.expr.trim())),
        ("instant", Yaml::plain(&true)),
        ("range", Yaml::plain(&false)),
        (
            "datasource",
            Yaml::map([
                ("type", Yaml::text("prometheus")),
                ("uid", Yaml::text(datasource)),
            ]),
        ),
    ]);
    let is_number = "is_number($query) || is_nan($query) || is_inf($query)";
    let math = Yaml::map([
        ("refId", Yaml::text("has_value")),
        ("type", Yaml::text("math")),
        ("expression", Yaml::text(is_number)),
        ("datasource", expression_source()),
    ]);
    let above_zero = Yaml::map([(
        "evaluator",
        Yaml::map([
            ("type", Yaml::text("gt")),
            ("params", Yaml::List(vec![Yaml::plain(&0)])),
        ]),
    )]);
    let threshold = Yaml::map([
        ("refId", Yaml::text("threshold")),
        ("type", Yaml::text("threshold")),
        ("expression", Yaml::text("has_value")),
        ("conditions", Yaml::List(vec![above_zero])),
        ("datasource", expression_source()),
    ]);
    // An instant query has no range, but Grafana requires one.
    let seconds = duration::parse(&group.interval).unwrap_or_default() / 1000;
    let node = |id: &str, source: &str, seconds: u64, model: Yaml| {
        Yaml::map([
            ("refId", Yaml::text(id)),
            ("datasourceUid", Yaml::text(source)),
            (
                "relativeTimeRange",
                Yaml::map([("from", Yaml::plain(&seconds)), ("to", Yaml::plain(&0))]),
            ),
            ("model", model),
        ])
    };
    vec![
        node("query", datasource, seconds, query),
        node("has_value", "__expr__", 0, math),
        node("threshold", "__expr__", 0, threshold),
    ]
}

fn expression_source() -> Yaml {
    Yaml::map([("type", Yaml::text("__expr__")), ("uid", Yaml::text("__expr__"))])
}

/// Returns the `uid` of a rule: the name in lower case with dashes, at most 40 characters.
fn uid(name: &str) -> String {
    let mut uid = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            uid.push('-');
        }
        uid.push(letter.to_ascii_lowercase());
    }
    uid.trim_start_matches('-').to_owned()
}
