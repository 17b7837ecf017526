//! Checks how receivers translate names: `train.loss` may be called `train_loss` there.

use std::time::Duration;

use pulsetrain_otlp::Signal;
use pulsetrain_semconv::metric::TRAIN_STEP_DURATION;
use pulsetrain_sinks::ask_host;

use super::{
    endpoint::{EndpointTarget, place},
    finding::{Findings, Subject},
};
use crate::config::{Config, SinkConfig, TranslationName};

/// The paths of Prometheus' own OTLP receiver and of its configuration.
const PROMETHEUS: &str = "/api/v1/otlp";
const PROMETHEUS_CONFIG: &str = "/api/v1/status/config";
const DEFAULT_STRATEGY: &str = "UnderscoreEscapingWithSuffixes";

/// Reports how a receiver translates names, if its configuration is readable.
pub(super) async fn check_receiver(target: &EndpointTarget, timeout: Duration, findings: &mut Findings) {
    let config = target.config.signal(Signal::Metrics);
    if !config.endpoint.path().starts_with(PROMETHEUS) {
        return;
    }
    let Some(answer) = ask_host(config, PROMETHEUS_CONFIG, timeout).await else {
        return;
    };
    let answer_text = String::from_utf8_lossy(&answer.body);
    let strategy = setting(&answer_text, "translation_strategy").unwrap_or(DEFAULT_STRATEGY);
    let Subject::Endpoint(url) = place(target, Signal::Metrics) else {
        return;
    };
    report(Subject::Names(url), strategy, findings);
    if !answer_text.contains("otlp-deltatocumulative")
        && setting(&answer_text, "out_of_order_time_window").is_none()
    {
        findings.warn(
            Subject::Names(place(target, Signal::Metrics).to_string()),
            "it takes only points that are newer than the last of their series",
            "to import old logs, set storage.tsdb.out_of_order_time_window in prometheus.yml",
        );
    }
}

/// Reports how the agent's own pages translate names.
pub(super) fn of_pages(config: Option<&Config>, findings: &mut Findings) {
    for (_, sink) in config.iter().flat_map(|config| config.sinks.iter()) {
        if let SinkConfig::Prometheus(page) = sink {
            let place = Subject::Names(match page.listen.0.tcp() {
                Some(address) => format!("http://{address}{}", page.path),
                None => format!("{}{}", page.listen.0, page.path),
            });
            report(place, strategy(page.translation), findings);
        }
    }
}

/// Reports the effect of one translation strategy, with an example.
fn report(place: Subject, strategy: &str, findings: &mut Findings) {
    let name = TRAIN_STEP_DURATION.name;
    let (shown, keeps_dots) = match strategy {
        "NoTranslation" => (name.to_owned(), true),
        "NoUTF8EscapingWithSuffixes" => (format!("{name}_seconds"), true),
        "UnderscoreEscapingWithoutSuffixes" => (name.replace('.', "_"), false),
        _ => (TRAIN_STEP_DURATION.prometheus_name.to_owned(), false),
    };
    let what = format!("{name} is called {shown} there ({strategy})");
    if keeps_dots {
        findings.warn(
            place,
            what,
            format!("write {{\"{shown}_count\"}} in queries; dashboards and alerts made for underscores find nothing"),
        );
    } else if strategy == "UnderscoreEscapingWithoutSuffixes" {
        findings.warn(
            place,
            what,
            "dashboards and alerts made for units and _total find nothing",
        );
    } else {
        findings.fine(place, what);
    }
}

fn strategy(name: TranslationName) -> &'static str {
    match name {
        TranslationName::UnderscoreEscapingWithSuffixes => DEFAULT_STRATEGY,
        TranslationName::UnderscoreEscapingWithoutSuffixes => "UnderscoreEscapingWithoutSuffixes",
        TranslationName::NoUtf8EscapingWithSuffixes => "NoUTF8EscapingWithSuffixes",
        TranslationName::NoTranslation => "NoTranslation",
    }
}

/// Returns the value of a key of the YAML inside Prometheus' JSON, whose lines are separated by an escaped `\n`.
fn setting<'a>(answer_text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = answer_text.split_once(&format!("{key}: "))?;
    rest.split(['\\', '\n', '"']).next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    #[test]
    fn setting_is_found_in_the_response_of_prometheus() {
        let answer_text =
            r#"{"status":"success","data":{"yaml":"otlp:\n  translation_strategy: NoTranslation\n"}}"#;
        assert_eq!(
            setting(answer_text, "translation_strategy"),
            Some("NoTranslation")
        );
        assert_eq!(setting(answer_text, "out_of_order_time_window"), None);
    }

    #[test]
    fn names_with_dots_get_advice_for_queries() {
        let mut findings = Findings::default();
        report(
            Subject::Names("p".to_owned()),
            "NoUTF8EscapingWithSuffixes",
            &mut findings,
        );
        report(Subject::Names("p".to_owned()), DEFAULT_STRATEGY, &mut findings);
        let [dots, underscores] = findings.all() else {
            panic!("{findings:?}");
        };
        assert_eq!(dots.level, Level::Warning);
        assert!(
            dots.advice
                .as_deref()
                .unwrap_or_default()
                .contains(r#"{"train.step.duration_seconds_count"}"#)
        );
        assert!(
            underscores.what.contains("train_step_duration_seconds"),
            "{}",
            underscores.what
        );
    }
}
