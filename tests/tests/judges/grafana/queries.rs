//! Runs the queries of the generated Grafana dashboards as Grafana does.

#![allow(clippy::print_stdout, reason = "the test prints what it found of each panel")]

use std::{fs, path::Path};

use pulsetrain_grafana::{DashboardQuery, Language};
use pulsetrain_tests::{Prometheus, otlp::list};
use serde_json::Value;

use crate::grafana::{
    alerts::grafana,
    fleet::{Fleet, seconds},
};

/// The value of Grafana's `$__rate_interval` for a scrape interval of five seconds.
const RATE_INTERVAL: &str = "20s";
/// The interval between two points of a panel, in seconds.
const STEP: &str = "2";
/// A query from a file in `grafana/dashboards`.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) dashboard: String,
    pub(crate) place: String,
    /// The query, with variables.
    pub(crate) expr: String,
    pub(crate) language: Language,
    /// Whether it is an instant query.
    instant: bool,
}

/// The values of variables: name, and the text that replaces it in queries.
pub(crate) type Values = Vec<(String, String)>;

/// Returns the dashboards as Grafana loads them.
pub(crate) fn dashboards() -> Vec<(String, Value)> {
    let entries = fs::read_dir(grafana().join("dashboards")).expect("there are dashboards");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &Path| {
        let text = fs::read_to_string(path).expect("a dashboard can be read");
        serde_json::from_str(&text).expect("a dashboard is JSON")
    };
    let name = |path: &Path| path.file_stem().expect("a name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), read(path))).collect()
}

/// Returns an error for each query that returns no series in one of the backends, or that no definition has.
pub(crate) fn check(fleet: &Fleet) -> Vec<String> {
    let defined =
        pulsetrain_grafana::queries(&grafana().join("definitions")).expect("the definitions are right");
    let mut errors = Vec::new();
    let mut asked = 0;
    for (name, dashboard) in dashboards() {
        let queries = queries(&name, &dashboard);
        for (way, prometheus) in fleet.backends() {
            let values = variables(&dashboard, prometheus, way, &mut errors);
            let promql = queries.iter().filter(|query| query.language == Language::PromQl);
            let counted: Vec<(&Query, usize)> = promql
                .map(|query| (query, count(prometheus, query, &values, fleet.start)))
                .collect();
            asked += counted.len();
            for (query, series) in &counted {
                println!("{way:6} {name} / {}: {series} series", query.place);
                // For a query with a fallback, one of the two must have data.
                let alternatives = || counted.iter().filter(|(of, _)| of.place == query.place);
                let is_alternative = alternatives()
                    .any(|(of, _)| definition(of, &defined).is_some_and(|definition| definition.fallback));
                if *series == 0 && !(is_alternative && alternatives().any(|(_, series)| *series > 0)) {
                    let data = definition(query, &defined).map(|definition| &definition.data);
                    let expr = substitute(&query.expr, &values);
                    errors.push(format!(
                        "{way}: {name} / {} is empty ({data:?}): {expr}",
                        query.place
                    ));
                }
            }
        }
        for query in &queries {
            if definition(query, &defined).is_none() {
                errors.push(format!(
                    "{name} / {}: no definition has {}",
                    query.place, query.expr
                ));
            }
        }
    }
    println!("{asked} queries");
    errors
}

fn definition<'a>(query: &Query, defined: &'a [DashboardQuery]) -> Option<&'a DashboardQuery> {
    defined
        .iter()
        .find(|of| of.dashboard == query.dashboard && of.expr == query.expr)
}

/// Returns the queries of panels and annotations.
pub(crate) fn queries(name: &str, dashboard: &Value) -> Vec<Query> {
    let query = |place: String, language, target: &Value| Query {
        dashboard: name.to_owned(),
        place,
        expr: text(
            target,
            if language == Language::TraceQl {
                "query"
            } else {
                "expr"
            },
        ),
        language,
        instant: target["instant"] == true,
    };
    let panels = list(&dashboard["panels"]);
    let of_panels = panels.iter().flat_map(|panel| {
        list(&panel["targets"])
            .iter()
            .map(|target| {
                let language = match target["datasource"]["type"].as_str() {
                    Some("tempo") => Language::TraceQl,
                    _ => Language::PromQl,
                };
                query(text(panel, "title"), language, target)
            })
            .collect::<Vec<_>>()
    });
    let annotations = list(&dashboard["annotations"]["list"]);
    let own = annotations.iter().filter(|annotation| annotation["builtIn"] != 1);
    let of_annotations = own.map(|annotation| {
        query(
            format!("annotation {}", text(annotation, "name")),
            Language::PromQl,
            annotation,
        )
    });
    of_panels.chain(of_annotations).collect()
}

/// Returns the values of the variables of a dashboard while "All" is selected. A variable without values is an error.
pub(crate) fn variables(
    dashboard: &Value,
    prometheus: &Prometheus,
    way: &str,
    errors: &mut Vec<String>,
) -> Values {
    let mut values = Values::new();
    for variable in list(&dashboard["templating"]["list"]) {
        let name = text(variable, "name");
        match variable["type"].as_str() {
            Some("query") => {
                let found = label_values(&text(&variable["query"], "query"), &values, prometheus);
                println!(
                    "{way:6} {} / variable {name}: {} values",
                    text(dashboard, "title"),
                    found.len()
                );
                if found.is_empty() {
                    errors.push(format!(
                        "{way}: {} / variable {name} has no values",
                        text(dashboard, "title")
                    ));
                }
                let all = variable["allValue"].as_str().map(str::to_owned);
                values.push((name, all.unwrap_or_else(|| format!("({})", found.join("|")))));
            }
            Some("textbox") => {
                let value = text(&variable["current"], "value");
                values.push((name, value));
            }
            _ => {}
        }
    }
    values
}

/// Evaluates `label_values(SELECTOR, LABEL)`.
fn label_values(query: &str, values: &Values, prometheus: &Prometheus) -> Vec<String> {
    let inside = query
        .strip_prefix("label_values(")
        .and_then(|rest| rest.strip_suffix(')'));
    let (selector, label) = inside
        .and_then(|inside| inside.rsplit_once(", "))
        .expect("label_values(SELECTOR, LABEL)");
    let series = prometheus.series(&substitute(selector, values));
    let mut found: Vec<String> = series
        .iter()
        .filter_map(|labels| labels[label].as_str().map(str::to_owned))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the query with the values of variables. Longer names are replaced first, because names may share a prefix.
pub(crate) fn substitute(expr: &str, values: &Values) -> String {
    let mut values: Vec<(&str, &str)> = values
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    values.extend([("__rate_interval", RATE_INTERVAL), ("__range", "5m")]);
    values.sort_by_key(|(name, _)| usize::MAX - name.len());
    values.iter().fold(expr.to_owned(), |expr, (name, value)| {
        expr.replace(&format!("${name}"), value)
    })
}

/// Returns the number of series of a query that have a number other than NaN, or a histogram.
fn count(prometheus: &Prometheus, query: &Query, values: &Values, start: u64) -> usize {
    let expr = substitute(&query.expr, values);
    let series = if query.instant {
        prometheus.query(&expr)
    } else {
        prometheus.query_range(&expr, &start.to_string(), &seconds().to_string(), STEP)
    };
    let is_number = |pair: &Value| pair[1].as_str().is_some_and(|number| number != "NaN");
    let has_data = |series: &&Value| {
        let numbers = list(&series["values"]).iter().any(is_number) || is_number(&series["value"]);
        numbers || !list(&series["histograms"]).is_empty() || series.get("histogram").is_some()
    };
    series.iter().filter(has_data).count()
}

pub(crate) fn text(value: &Value, key: &str) -> String {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("no text `{key}`: {value}"))
        .to_owned()
}
