//! The identity of series, and the text of their labels.

use std::borrow::Cow;

use pulsetrain_otlp::{
    WireError,
    json::value_text,
    view::{AnyValue, KeyValue, Repeated},
};

/// The points of a metric in one scope. Metrics of other scopes, kinds or units have their own points, even with the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stream {
    /// The name of the metric, by its number in [`super::points::Points::families`].
    pub(super) family: u32,
    /// The scope without its schema URLs.
    pub(super) scope: u32,
    /// The kind of its points, as text.
    pub(super) kind: &'static str,
    pub(super) is_delta: bool,
    /// The unit, by its number in [`super::points::Points::units`].
    pub(super) unit: u32,
}

/// A counter of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeriesKey {
    /// The stream, by its number in [`super::points::Points::streams`].
    pub(super) stream: u32,
    /// The metric, the statistic and the labels.
    pub(super) name: String,
    /// The labels with the types of their values, if the name does not show these.
    pub(super) typed: Option<Box<str>>,
}

/// The labels of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LabelText {
    /// The attributes as ` {key=value, ...}` in sorted order; empty without attributes.
    pub(super) shown: String,
    /// The same with the types of the values, if that is another text.
    pub(super) typed: Option<Box<str>>,
}

impl LabelText {
    pub(super) fn from_attributes(attributes: Repeated<'_, KeyValue<'_>>) -> Result<Self, WireError> {
        let mut labels: Vec<(String, Option<String>)> = Vec::new();
        for attribute in attributes {
            let attribute = attribute?;
            let value = attribute.value.unwrap_or_default();
            let key = attribute.key.to_str_lossy();
            let key = if key.contains('=') {
                json(&key)
            } else {
                quoted(key)
            };
            let shown = match value {
                AnyValue::String(text) => quoted(text.to_str_lossy()),
                value => value_text(value),
            };
            let typed = typed(value, &shown).map(|typed| format!("{key}={typed}"));
            labels.push((format!("{key}={shown}"), typed));
        }
        labels.sort_unstable();
        let shown = joined(labels.iter().map(|(shown, _)| shown.as_str()));
        let typed = labels.iter().any(|(_, typed)| typed.is_some()).then(|| {
            let typed = labels
                .iter()
                .map(|(shown, typed)| typed.as_deref().unwrap_or(shown));
            joined(typed).into_boxed_str()
        });
        Ok(Self { shown, typed })
    }
}

fn joined<'a>(labels: impl Iterator<Item = &'a str>) -> String {
    let labels: Vec<&str> = labels.collect();
    if labels.is_empty() {
        String::new()
    } else {
        format!(" {{{}}}", labels.join(", "))
    }
}

/// Returns a text in quotes if it could be read as several labels.
fn quoted(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('"') || text.contains(", ") {
        json(&text)
    } else {
        text
    }
}

/// Returns a text as a JSON string.
fn json(text: &str) -> Cow<'static, str> {
    Cow::Owned(serde_json::Value::from(text).to_string())
}

/// Returns the text of a value with its type, if `shown` is also the text of a value of another type.
fn typed(value: AnyValue<'_>, shown: &str) -> Option<String> {
    let is_ambiguous = || {
        shown.is_empty()
            || shown.starts_with(['[', '{'])
            || matches!(shown, "true" | "false")
            || shown.parse::<f64>().is_ok()
    };
    match value {
        AnyValue::String(_) if is_ambiguous() => Some(json(shown).into_owned()),
        AnyValue::Double(value) if value.is_finite() && !shown.contains('.') => Some(format!("{shown}.0")),
        AnyValue::Bytes(_) => Some(format!("bytes \"{shown}\"")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::{
        json as otlp_json,
        limits::Limits,
        view::{Message, MetricsData, Resource, ResourceMetrics},
    };

    use super::*;

    /// Returns the labels of attributes that are given as OTLP/JSON.
    fn labels(attributes: &str) -> LabelText {
        let object = format!(
            r#"{{"resourceMetrics":[{{"resource":{{"attributes":{attributes}}},"scopeMetrics":[{{"metrics":[{{}}]}}]}}]}}"#
        );
        let mut bytes = Vec::new();
        otlp_json::decode(object.as_bytes(), &Limits::default(), &mut bytes).unwrap();
        let metrics = MetricsData::decode(&bytes).unwrap();
        let first: ResourceMetrics<'_> = metrics.resource_metrics.iter().next().unwrap().unwrap();
        let resource: Resource<'_> = first.resource.unwrap();
        LabelText::from_attributes(resource.attributes).unwrap()
    }

    #[test]
    fn text_with_separators_is_quoted() {
        let labels = labels(
            r#"[{"key":"m","value":{"stringValue":"get, put"}},{"key":"a","value":{"stringValue":"5\" disk"}},
                {"key":"k=1","value":{"stringValue":"x"}}]"#,
        );
        assert_eq!(labels.shown, r#" {"k=1"=x, a="5\" disk", m="get, put"}"#);
        assert_eq!(labels.typed, None);
    }

    #[test]
    fn equal_texts_of_different_types_have_different_typed_texts() {
        for (value, typed) in [
            (r#"{"intValue":"1"}"#, None),
            (r#"{"stringValue":"1"}"#, Some(r#" {k="1"}"#)),
            (r#"{"doubleValue":1}"#, Some(" {k=1.0}")),
        ] {
            let labels = labels(&format!(r#"[{{"key":"k","value":{value}}}]"#));
            assert_eq!(labels.shown, " {k=1}");
            assert_eq!(labels.typed.as_deref(), typed);
        }
    }
}
