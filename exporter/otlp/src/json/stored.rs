//! Notations of trace stores that OTLP/JSON does not allow: ids in base64 or without leading zeros, enum values by name.

use super::{base64, hex};

const TRACE_ID: &str = "traceId";

/// The enum values of spans and metrics; [`severity`] has those of log records.
const ENUM_VALUES: [(&str, u64); 12] = [
    ("SPAN_KIND_UNSPECIFIED", 0),
    ("SPAN_KIND_INTERNAL", 1),
    ("SPAN_KIND_SERVER", 2),
    ("SPAN_KIND_CLIENT", 3),
    ("SPAN_KIND_PRODUCER", 4),
    ("SPAN_KIND_CONSUMER", 5),
    ("STATUS_CODE_UNSET", 0),
    ("STATUS_CODE_OK", 1),
    ("STATUS_CODE_ERROR", 2),
    ("AGGREGATION_TEMPORALITY_UNSPECIFIED", 0),
    ("AGGREGATION_TEMPORALITY_DELTA", 1),
    ("AGGREGATION_TEMPORALITY_CUMULATIVE", 2),
];

/// Returns the number of an enum value, by its name or its digits.
pub(super) fn enum_value(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let named = ENUM_VALUES.iter().find(|(name, _)| *name == text);
    named
        .map(|(_, value)| *value)
        .or_else(|| severity(text))
        .or_else(|| text.parse::<u32>().ok().map(u64::from))
}

/// Returns the number of a `SeverityNumber` by its name: four numbers a level, `INFO` to `INFO4`.
fn severity(text: &str) -> Option<u64> {
    const LEVELS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];
    let name = text.strip_prefix("SEVERITY_NUMBER_")?;
    if name == "UNSPECIFIED" {
        return Some(0);
    }
    let level = name.trim_end_matches(['2', '3', '4']);
    let within = match &name[level.len()..] {
        "" => 0,
        digit => digit.parse::<u64>().ok().filter(|digit| *digit <= 4)? - 1,
    };
    let place = LEVELS.iter().position(|known| *known == level)?;
    Some(place as u64 * 4 + within + 1)
}

/// Returns the bytes of an id in a notation that OTLP/JSON does not allow, or `None` if it is OTLP/JSON or not an id.
///
/// Base64 of 8 or 16 bytes ends with `=`, which is not a hex digit. Text of hex digits only is read as hex, since stores omit
/// leading zeros more often than padding.
pub(super) fn id(field: &str, text: &[u8]) -> Option<Vec<u8>> {
    let whole = if field == TRACE_ID { 16 } else { 8 };
    let mut bytes = Vec::with_capacity(whole);
    if text.iter().all(u8::is_ascii_hexdigit) {
        let missing = (2 * whole)
            .checked_sub(text.len())
            .filter(|missing| *missing > 0)?;
        let mut digits = vec![b'0'; missing];
        digits.extend_from_slice(text);
        return hex::decode(&digits, &mut bytes).ok().map(|()| bytes);
    }
    let is_id = base64::decode(text, &mut bytes) && (bytes.len() == whole || bytes.len() == 8);
    is_id.then(|| padded(bytes, whole))
}

/// Adds leading zeros up to the length of the id.
fn padded(bytes: Vec<u8>, whole: usize) -> Vec<u8> {
    let mut id = vec![0; whole.saturating_sub(bytes.len())];
    id.extend(bytes);
    id
}

#[cfg(test)]
mod tests {
    use crate::{
        Signal,
        json::{self, Dialect},
        limits::Limits,
    };

    fn again(text: &str) -> Result<String, String> {
        let (mut bytes, mut out) = (Vec::new(), Vec::new());
        json::decode_dialect(text.as_bytes(), Dialect::Stored, &Limits::default(), &mut bytes)
            .map_err(|error| error.to_string())?;
        json::encode(Signal::Traces, &bytes, &mut out).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out).expect("OTLP/JSON is UTF-8"))
    }

    fn span(fields: &str) -> String {
        format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{fields}}}]}}]}}]}}"#)
    }

    #[test]
    fn hex_and_base64_spellings_of_an_id_are_equal() {
        let plain = span(r#""traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"a1b2c3d4e5f60702""#);
        for ids in [
            r#""traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"A1B2C3D4E5F60702""#,
            r#""traceId":"S/kvNXezTaajzpKdDg5HNg==","spanId":"obLD1OX2BwI=""#,
            r#""traceId":"S_kvNXezTaajzpKdDg5HNg","spanId":"obLD1OX2BwI""#,
            r#""traceId":"S/kvNXezTaajzpKdDg5HNg==","spanId":"a1b2c3d4e5f60702""#,
        ] {
            assert_eq!(again(&span(ids)), Ok(plain.clone()), "{ids}");
        }
    }

    #[test]
    fn leading_zeros_omitted_by_a_trace_store_are_restored() {
        let whole = span(r#""traceId":"00000000000000001234567890abcdef""#);
        for id in ["1234567890abcdef", "EjRWeJCrze8=", "AAAAAAAAAAASNFZ4kKvN7w=="] {
            assert_eq!(
                again(&span(&format!(r#""traceId":"{id}""#))),
                Ok(whole.clone()),
                "{id}"
            );
        }
        // Eleven and twelve digits, which could also be base64.
        for id in ["a1", "a1b2c3d4e5f", "a1b2c3d4e5f6"] {
            let whole = span(&format!(r#""spanId":"{id:0>16}""#));
            assert_eq!(again(&span(&format!(r#""spanId":"{id}""#))), Ok(whole), "{id}");
        }
    }

    #[test]
    fn invalid_trace_id_is_rejected_with_its_field_name() {
        for id in [
            "4bf92f3577b34da6a3ce929d0e0e473g",
            "S/kvNXezTaaj!pKdDg5HNg==",
            "xyz",
        ] {
            let refused = again(&span(&format!(r#""traceId":"{id}""#)));
            assert!(refused.unwrap_err().contains("in `traceId`"), "{id}");
        }
    }

    #[test]
    fn stored_json_accepts_enum_names_and_batches_for_resource_spans() {
        let named = r#"{"batches":[{"scopeSpans":[{"spans":[{"kind":"SPAN_KIND_SERVER","status":{"code":"STATUS_CODE_ERROR"}}]}]}]}"#;
        assert_eq!(again(named), Ok(span(r#""kind":2,"status":{"code":2}"#)));
        assert_eq!(again(&span(r#""kind":"3""#)), Ok(span(r#""kind":3"#)));
        assert!(
            again(&span(r#""kind":"SPAN_KIND_SEVER""#))
                .unwrap_err()
                .contains("enum value")
        );
    }

    #[test]
    fn severity_names_map_to_severity_numbers() {
        for (name, number) in [
            ("UNSPECIFIED", 0),
            ("TRACE", 1),
            ("INFO", 9),
            ("WARN3", 15),
            ("FATAL4", 24),
        ] {
            assert_eq!(
                super::enum_value(format!("SEVERITY_NUMBER_{name}").as_bytes()),
                Some(number),
                "{name}"
            );
        }
        assert_eq!(super::enum_value(b"SEVERITY_NUMBER_INFO5"), None);
        assert_eq!(super::enum_value(b"SEVERITY_NUMBER_INFO22"), None);
    }

    #[test]
    fn strict_otlp_json_rejects_base64_ids_and_enum_names() {
        for text in [
            span(r#""traceId":"S/kvNXezTaajzpKdDg5HNg==""#),
            span(r#""kind":"SPAN_KIND_SERVER""#),
        ] {
            assert!(json::decode(text.as_bytes(), &Limits::default(), &mut Vec::new()).is_err());
        }
    }
}
