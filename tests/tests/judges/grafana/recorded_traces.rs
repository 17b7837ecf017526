//! The TraceQL queries of dashboards, compared with what a real Tempo answered (`tests/corpus/tempo`).

use std::collections::BTreeSet;

use pulsetrain_grafana::Language;
use pulsetrain_tests::{
    query_parameter, recorded_tempo_answer, recorded_tempo_body, recorded_tempo_requests,
};
use serde_json::Value;

use crate::grafana::queries::{dashboards, queries};

/// The forms of the dashboards that no recorded query has: only a live Tempo checks them.
const LIVE_ONLY: [&str; 2] = ["resource =~ text", "| select"];

#[test]
fn dashboards_ask_only_for_tags_and_conditions_that_a_real_tempo_answered() {
    let mut forms = BTreeSet::new();
    let mut names = BTreeSet::new();
    for query in traceql_queries() {
        forms.extend(forms_in(&query));
        names.extend(attributes_in(&query));
    }
    assert!(names.len() > 2, "{names:?}");
    let tags = recorded_tags();
    let unknown: Vec<_> = names.difference(&tags).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not in {tags:?}");
    let answered: BTreeSet<String> = answered_queries()
        .iter()
        .flat_map(|query| forms_in(query))
        .collect();
    let unanswered: BTreeSet<_> = forms.difference(&answered).map(String::as_str).collect();
    assert_eq!(unanswered, BTreeSet::from(LIVE_ONLY));
}

#[test]
fn conditions_of_a_query_are_recognized() {
    let query = r#"{ name = "train.step" && span.train.step >= $step } >> { status = error } | select(resource.train.rank)"#;
    let forms = ["name = text", "span >= value", "status = value", "| select"].map(str::to_owned);
    assert_eq!(forms_in(query), BTreeSet::from(forms));
    assert_eq!(
        attributes_in(query),
        BTreeSet::from(["resource.train.rank", "span.train.step"].map(str::to_owned))
    );
}

/// Returns the queries in TraceQL of all dashboards.
fn traceql_queries() -> Vec<String> {
    let all = dashboards();
    let queries = all.iter().flat_map(|(name, dashboard)| queries(name, dashboard));
    let traceql = queries.filter(|query| query.language == Language::TraceQl);
    traceql.map(|query| query.expr).collect()
}

/// Returns the recorded queries that Tempo did not reject.
fn answered_queries() -> Vec<String> {
    let names = recorded_tempo_requests();
    let answers = names.iter().map(|name| recorded_tempo_answer(name));
    answers
        .filter(|answer| answer["status"] == 200)
        .filter_map(|answer| query_parameter(&answer["path"].as_str()?.parse().ok()?, "q"))
        .collect()
}

/// Returns the attributes that the recorded Tempo had, with their scope.
fn recorded_tags() -> BTreeSet<String> {
    let answer: Value = serde_json::from_slice(&recorded_tempo_body("tags")).expect("tags are JSON");
    let scopes = answer["scopes"].as_array().expect("tags have scopes");
    let names = |scope: &Value| -> Vec<String> {
        let tags = scope["tags"].as_array().expect("a scope has tags").iter();
        let scope = scope["name"].as_str().expect("a scope has a name");
        tags.filter_map(|tag| Some(format!("{scope}.{}", tag.as_str()?)))
            .collect()
    };
    scopes.iter().flat_map(names).collect()
}

/// Returns the forms of the conditions in braces, such as `span = text` for `span.NAME = "..."`, and the pipeline stages.
fn forms_in(query: &str) -> BTreeSet<String> {
    let blocks = query.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let conditions = blocks.flat_map(|block| block.split("&&")).map(|condition| {
        let mut words = condition.split_whitespace();
        let field = words
            .next()
            .and_then(|field| field.split('.').next())
            .unwrap_or_default();
        let operator = words.next().unwrap_or_default();
        let is_text = words.next().is_some_and(|value| value.starts_with('"'));
        format!("{field} {operator} {}", if is_text { "text" } else { "value" })
    });
    let stages = query.split('|').skip(1);
    let stages = stages.map(|stage| format!("| {}", stage.trim().split('(').next().unwrap_or_default()));
    conditions.chain(stages).collect()
}

/// Returns the attributes of a query, with their scope.
fn attributes_in(query: &str) -> BTreeSet<String> {
    let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_')));
    let scoped = words.filter(|word| word.starts_with("span.") || word.starts_with("resource."));
    scoped.map(str::to_owned).collect()
}
