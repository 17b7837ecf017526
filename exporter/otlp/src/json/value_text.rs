//! Formats the value of an attribute or a log body as text, as the Collector and Prometheus do: lists and maps are JSON, bytes
//! are base64.

use std::{borrow::Cow, collections::BTreeMap};

use super::{base64, escape};
use crate::view::AnyValue;

/// Values that are nested deeper than this are written as null.
const DEEPEST: usize = 16;

/// Returns the text of a value; invalid UTF-8 becomes U+FFFD.
///
/// The keys of a map are sorted; of equal keys the last counts. A number in a list or a map that is not finite is null.
pub fn value_text(value: AnyValue<'_>) -> Cow<'_, str> {
    match value {
        AnyValue::String(text) => text.to_str_lossy(),
        AnyValue::Bool(value) => Cow::Borrowed(if value { "true" } else { "false" }),
        AnyValue::Int(value) => Cow::Owned(itoa::Buffer::new().format(value).to_owned()),
        AnyValue::Double(value) => Cow::Owned(value.to_string()),
        AnyValue::Bytes(bytes) => into_text(|out| base64::encode(bytes, out)),
        AnyValue::Array(_) | AnyValue::Map(_) => into_text(|out| write_json(value, 0, out)),
        AnyValue::Empty | AnyValue::StringIndex(_) => Cow::Borrowed(""),
    }
}

fn into_text(write: impl FnOnce(&mut Vec<u8>)) -> Cow<'static, str> {
    let mut out = Vec::new();
    write(&mut out);
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

fn write_json(value: AnyValue<'_>, depth: usize, out: &mut Vec<u8>) {
    match value {
        _ if depth > DEEPEST => out.extend_from_slice(b"null"),
        AnyValue::Empty => out.extend_from_slice(b"null"),
        AnyValue::Double(value) if !value.is_finite() => out.extend_from_slice(b"null"),
        AnyValue::Double(value) => {
            out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
        }
        AnyValue::Bool(_) | AnyValue::Int(_) => out.extend_from_slice(value_text(value).as_bytes()),
        AnyValue::Array(values) => {
            out.push(b'[');
            for (index, item) in values.iter().map_while(Result::ok).enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_json(item, depth + 1, out);
            }
            out.push(b']');
        }
        AnyValue::Map(entries) => {
            let entries = entries.iter().map_while(Result::ok);
            let entries: BTreeMap<_, _> = entries
                .map(|entry| (entry.key.to_str_lossy(), entry.value.unwrap_or_default()))
                .collect();
            out.push(b'{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                escape::write_string(key.as_bytes(), out);
                out.push(b':');
                write_json(value, depth + 1, out);
            }
            out.push(b'}');
        }
        AnyValue::String(_) | AnyValue::Bytes(_) | AnyValue::StringIndex(_) => {
            escape::write_string(value_text(value).as_bytes(), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        json,
        limits::Limits,
        view::{LogsData, Message},
    };

    /// Returns the text of a log body that is given as OTLP/JSON.
    fn text(body: &str) -> String {
        let object =
            format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{body}}}]}}]}}]}}"#);
        let mut bytes = Vec::new();
        json::decode(object.as_bytes(), &Limits::default(), &mut bytes).unwrap();
        let logs = LogsData::decode(&bytes).unwrap();
        let resource = logs.resource_logs.iter().next().unwrap().unwrap();
        let scope = resource.scope_logs.iter().next().unwrap().unwrap();
        let record = scope.log_records.iter().next().unwrap().unwrap();
        value_text(record.body.unwrap()).into_owned()
    }

    #[test]
    fn map_value_is_written_as_json_with_sorted_keys() {
        let map = r#"{"kvlistValue":{"values":[
            {"key":"b","value":{"intValue":"-2"}}, {"key":"a\"","value":{"doubleValue":1}},
            {"key":"list","value":{"arrayValue":{"values":[{"boolValue":true},{"doubleValue":"NaN"},{"bytesValue":"AQI="}]}}},
            {"key":"b","value":{"stringValue":"last"}}, {"key":"none"}]}}"#;
        assert_eq!(
            text(map),
            r#"{"a\"":1.0,"b":"last","list":[true,null,"AQI="],"none":null}"#
        );
    }

    #[test]
    fn scalar_value_is_written_without_quotes() {
        for (body, expected) in [
            (r#"{"stringValue":"a \"b\""}"#, "a \"b\""),
            (r#"{"doubleValue":2}"#, "2"),
            (r#"{"boolValue":false}"#, "false"),
            (r#"{"bytesValue":"AQI="}"#, "AQI="),
        ] {
            assert_eq!(text(body), expected);
        }
    }
}
