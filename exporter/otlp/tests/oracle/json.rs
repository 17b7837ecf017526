//! Properties of the JSON side: text survives a round trip, and this crate and the serde of the prost types read each other's
//! output.

use opentelemetry_proto::tonic::{logs::v1::LogsData, metrics::v1::MetricsData, trace::v1::TracesData};
use proptest::prelude::*;
use prost::Message as _;
use pulsetrain_otlp::{Signal, json, limits::Limits};
use serde_json::Value;

use crate::{
    config,
    generate::Shape,
    messages,
    rearrange::{Change, rearrange},
    seeds,
};

fn encode(signal: Signal, bytes: &[u8]) -> String {
    let mut text = Vec::new();
    json::encode(signal, bytes, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn decode(text: &str) -> (json::Decoded, Vec<u8>) {
    let mut bytes = Vec::new();
    let decoded = json::decode(text.as_bytes(), &Limits::default(), &mut bytes)
        .unwrap_or_else(|error| panic!("{error} in {text}"));
    (decoded, bytes)
}

fn from_serde(signal: Signal, text: &str) -> Vec<u8> {
    let read = match signal {
        Signal::Traces => serde_json::from_str::<TracesData>(text).map(|data| data.encode_to_vec()),
        Signal::Metrics => serde_json::from_str::<MetricsData>(text).map(|data| data.encode_to_vec()),
        Signal::Logs => serde_json::from_str::<LogsData>(text).map(|data| data.encode_to_vec()),
    };
    read.unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn to_serde(signal: Signal, bytes: &[u8]) -> String {
    let written = match signal {
        Signal::Traces => serde_json::to_string(&TracesData::decode(bytes).unwrap()),
        Signal::Metrics => serde_json::to_string_pretty(&MetricsData::decode(bytes).unwrap()),
        Signal::Logs => serde_json::to_string(&LogsData::decode(bytes).unwrap()),
    };
    written.unwrap()
}

/// Replaces every NaN by the only one that JSON text can represent.
fn without_payloads(bytes: &[u8], signal: Signal) -> Vec<u8> {
    decode(&encode(signal, bytes)).1
}

/// Renames all fields of a JSON value to their names in the proto files.
fn with_proto_names(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(with_proto_names).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (proto_name(&name), with_proto_names(value)))
            .collect(),
        scalar => scalar,
    }
}

fn proto_name(json_name: &str) -> String {
    let letters = json_name.chars().map(|letter| match letter {
        'A'..='Z' => format!("_{}", letter.to_ascii_lowercase()),
        _ => letter.to_string(),
    });
    letters.collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn json_round_trip_returns_the_original_bytes(seed in seeds()) {
        for (signal, bytes) in messages(&seed, Shape::Any) {
            let text = encode(signal, &bytes);
            let again = without_payloads(&bytes, signal);
            prop_assert_eq!(again.len(), bytes.len());
            let (decoded, twice) = decode(&encode(signal, &again));
            prop_assert_eq!(&twice, &again);
            prop_assert_eq!(decoded.unknown_fields, 0);
            if !text.contains("\"NaN\"") {
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn equivalent_wire_encodings_produce_equal_json(seed in seeds()) {
        for (signal, bytes) in messages(&seed, Shape::Any) {
            for change in [Change::UnknownFields, Change::Scattered, Change::Unpacked, Change::Duplicated] {
                let other = decode(&encode(signal, &rearrange(signal, &bytes, change))).1;
                // The order of the names may differ, the values may not.
                let value = |bytes: &[u8]| serde_json::from_str::<Value>(&encode(signal, bytes)).unwrap();
                prop_assert_eq!(value(&other), value(&bytes), "{:?}", change);
            }
        }
    }

    #[test]
    fn serde_decodes_our_json_to_the_same_message(seed in seeds()) {
        for (signal, bytes) in messages(&seed, Shape::Serde) {
            if !bytes.is_empty() {
                prop_assert_eq!(from_serde(signal, &encode(signal, &bytes)), bytes);
            }
        }
    }

    #[test]
    fn json_written_by_serde_decodes_to_the_same_message(seed in seeds()) {
        for (signal, bytes) in messages(&seed, Shape::Serde) {
            let (decoded, ours) = decode(&to_serde(signal, &bytes));
            prop_assert_eq!(decoded.signal, Some(signal));
            prop_assert_eq!(decoded.unknown_fields, 0);
            prop_assert_eq!(crate::through_prost(signal, &ours).unwrap(), bytes);
        }
    }

    #[test]
    fn whitespace_and_names_of_the_proto_files_do_not_change_a_message(seed in seeds()) {
        for (signal, bytes) in messages(&seed, Shape::Any) {
            let text = encode(signal, &bytes);
            let value: Value = serde_json::from_str(&text).unwrap();
            for other in [value.clone(), with_proto_names(value.clone())] {
                let (decoded, bytes) = decode(&serde_json::to_string_pretty(&other).unwrap());
                prop_assert_eq!(decoded.unknown_fields, 0);
                let again: Value = serde_json::from_str(&encode(signal, &bytes)).unwrap();
                prop_assert_eq!(&again, &value);
            }
        }
    }
}
