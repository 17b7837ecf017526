//! One event of a Chrome JSON trace.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// An event with the field names of the format.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "ph")]
    pub(super) phase: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, rename = "cat", default)]
    pub(super) category: Cow<'a, str>,
    #[serde(default)]
    pub(super) pid: Value,
    #[serde(default)]
    pub(super) tid: Value,
    #[serde(borrow, default)]
    ts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    dur: Option<&'a RawValue>,
    #[serde(default)]
    id: Value,
    /// An id in a process (`local`) or in all processes (`global`), instead of `id`.
    #[serde(default)]
    id2: Value,
    /// The id of the arrows that the slice itself begins or ends.
    #[serde(default)]
    bind_id: Value,
    #[serde(default)]
    flow_in: Value,
    #[serde(default)]
    flow_out: Value,
    #[serde(default)]
    pub(super) args: Value,
}

/// The reason why an event is not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("it has no values in `args`")]
    NoValues,
    #[error("it has no `ts`")]
    NoTime,
    #[error("`ts` is {0}, not a time in microseconds")]
    Time(String),
    #[error("`dur` is {0}, not a duration in microseconds")]
    Duration(String),
    #[error("it has no text for `{0}`")]
    NoText(String),
}

/// A thread of a process, or an asynchronous operation.
pub(super) type RowKey = (String, String);

impl Event<'_> {
    /// Returns the row that the event belongs to.
    pub(super) fn row(&self) -> RowKey {
        let row = if self.is_async() {
            format!("{} {}", self.category, key(self.id()))
        } else {
            key(&self.tid)
        };
        (key(&self.pid), row)
    }

    /// Returns the row on which a begin and its end belong together. An operation with a global id can end in another process.
    pub(super) fn pairing(&self) -> RowKey {
        let (pid, row) = self.row();
        let has_own = !self.id.is_null() || !self.id2["local"].is_null();
        if self.is_async() && !has_own && !self.id2["global"].is_null() {
            (String::new(), format!("global {row}"))
        } else {
            (pid, row)
        }
    }

    /// Returns the id of the event, or null.
    pub(super) fn id(&self) -> &Value {
        let ids = [&self.id, &self.id2["local"], &self.id2["global"]];
        ids.into_iter().find(|id| !id.is_null()).unwrap_or(&self.id)
    }

    /// Returns the process in which the id is unique, or `None` if it is unique in the trace.
    pub(super) fn id_process(&self) -> Option<&Value> {
        let is_local = self.id.is_null() && !self.id2["local"].is_null();
        is_local.then_some(&self.pid)
    }

    /// Returns the id of the arrows that the slice itself begins or ends.
    pub(super) fn bound_arrow(&self) -> Option<&Value> {
        let is_end = self.flow_in.as_bool() == Some(true) || self.flow_out.as_bool() == Some(true);
        (is_end && !self.bind_id.is_null()).then_some(&self.bind_id)
    }

    /// Returns the number of values of a counter that are not numbers.
    ///
    /// # Errors
    /// The counter has no values.
    pub(super) fn odd_values(&self) -> Result<u64, EventError> {
        let values = self.args.as_object().filter(|values| !values.is_empty());
        let values = values.ok_or(EventError::NoValues)?;
        Ok(values.values().filter(|value| number(value).is_none()).count() as u64)
    }

    /// Returns whether the event belongs to an asynchronous operation and not to a thread.
    pub(super) fn is_async(&self) -> bool {
        matches!(&*self.phase, "b" | "e" | "n" | "S" | "F")
    }

    /// Returns its time or its start, in nanoseconds.
    pub(super) fn nanos(&self) -> Result<u64, EventError> {
        let ts = self.ts.ok_or(EventError::NoTime)?;
        nanos(ts.get()).ok_or_else(|| EventError::Time(ts.to_string()))
    }

    /// Returns its duration in nanoseconds.
    pub(super) fn duration(&self) -> Result<u64, EventError> {
        let Some(dur) = self.dur else {
            return Ok(0);
        };
        nanos(dur.get()).ok_or_else(|| EventError::Duration(dur.to_string()))
    }

    /// Returns an argument that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.args.get(name)?.as_str()
    }
}

/// Returns the text of a process, a thread or an id. Each may be a number or a text.
pub(super) fn key(value: &Value) -> String {
    match value {
        Value::Null => "0".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the value of a counter, which may be a number or a text.
pub(super) fn number(value: &Value) -> Option<f64> {
    let of_text = || value.as_str()?.trim().parse::<f64>().ok();
    value.as_f64().or_else(of_text)
}

/// Converts microseconds to nanoseconds: exactly for decimal digits, since times since 1970 exceed the precision of a double.
fn nanos(text: &str) -> Option<u64> {
    let text = text.trim_matches('"');
    let (micros, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if micros.is_empty() || !digits(micros) || !digits(fraction) {
        let micros: f64 = text.parse().ok()?;
        return (0.0..1e16).contains(&micros).then_some((micros * 1e3) as u64);
    }
    let thousandths = format!("{fraction:0<3}");
    let thousandths: u64 = thousandths.get(..3)?.parse().ok()?;
    micros
        .parse::<u64>()
        .ok()?
        .checked_mul(1000)?
        .checked_add(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1716489600123456.789", Some(1_716_489_600_123_456_789)),
            ("1.5", Some(1500)),
            ("\"12.0004\"", Some(12_000)),
            ("1.5e3", Some(1_500_000)),
            ("-1", None),
            ("null", None),
            ("1e300", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(nanos(text), expected, "{text}");
        }
    }

    #[test]
    fn ids_of_operations_are_read_in_each_form() {
        let pairing = |fields: &str| {
            let text = format!(r#"{{"ph": "b", "cat": "net", "pid": 7, {fields}}}"#);
            let event: Event<'_> = serde_json::from_str(&text).expect("it is an event");
            let (pid, row) = event.pairing();
            format!("{pid}|{row}")
        };
        for (fields, expected) in [
            (r#""id": "0x1""#, "7|net 0x1"),
            (r#""id": 1"#, "7|net 1"),
            (r#""id2": {"local": "0x1"}"#, "7|net 0x1"),
            (r#""id2": {"global": "0x1"}"#, "|global net 0x1"),
            (r#""id2": "odd""#, "7|net 0"),
        ] {
            assert_eq!(pairing(fields), expected, "{fields}");
        }
    }

    #[test]
    fn values_of_counters_may_be_texts() {
        for (value, expected) in [
            (Value::from(5), Some(5.0)),
            (Value::from("6.5"), Some(6.5)),
            (Value::from("MB"), None),
            (Value::Null, None),
        ] {
            assert_eq!(number(&value), expected, "{value}");
        }
    }
}
