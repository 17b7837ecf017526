//! The comparison must fail for different items, and must not fail for equal ones in another form.

use serde_json::{Value, json};

use super::Items;

fn gauge(points: &Value) -> Value {
    json!({"resourceMetrics": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "trainer"}}]},
        "scopeMetrics": [{"metrics": [{"name": "train.loss", "unit": "{loss}", "gauge": {"dataPoints": points}}]}],
    }]})
}

fn items(messages: &[Value]) -> Items {
    Items::parse(
        &messages
            .iter()
            .map(|message| format!("{message}\n"))
            .collect::<String>(),
    )
}

#[test]
fn batching_and_order_do_not_matter() {
    let (one, two) = (
        json!({"timeUnixNano": "1", "asDouble": 1.5}),
        json!({"timeUnixNano": "2", "asDouble": 2.5}),
    );
    let together = items(&[gauge(&json!([one, two]))]);
    assert_eq!(together.len(), 2);
    together.assert_same(&items(&[gauge(&json!([two])), gauge(&json!([one]))]));
}

#[test]
fn equivalent_json_encodings_compare_as_equal() {
    let terse = json!([{"timeUnixNano": 7, "asInt": 0, "attributes": [
        {"key": "a", "value": {"stringValue": ""}},
        {"key": "b", "value": {"boolValue": false}},
    ]}]);
    let wordy = json!([{"timeUnixNano": "7", "startTimeUnixNano": "0", "flags": 0, "exemplars": [], "asInt": "0",
    "attributes": [
        {"key": "b", "value": {"boolValue": false}},
        {"key": "a", "value": {"stringValue": ""}},
    ]}]);
    items(&[gauge(&terse)]).assert_same(&items(&[gauge(&wordy)]));
}

#[test]
fn integral_and_fractional_doubles_are_compared_as_numbers() {
    let short = gauge(&json!([{"timeUnixNano": "7", "asDouble": 3}]));
    items(&[short]).assert_same(&items(&[gauge(&json!([{"timeUnixNano": "7", "asDouble": 3.0}]))]));
}

#[test]
fn nan_compares_equal_to_nan() {
    let nan = items(&[gauge(&json!([{"timeUnixNano": "7", "asDouble": "NaN"}]))]);
    nan.assert_same(&nan);
    assert!(nan.values("train.loss")[0].1.is_nan());
}

#[test]
#[should_panic(expected = "1 items only on the left")]
fn duplicated_item_is_a_difference() {
    let message = gauge(&json!([{"timeUnixNano": "7", "asDouble": 3}]));
    items(&[message.clone(), message.clone()]).assert_same(&items(&[message]));
}

#[test]
#[should_panic(expected = "1 items only on the right")]
fn a_zero_is_not_a_missing_value() {
    let zero = items(&[gauge(&json!([{"timeUnixNano": "7", "asDouble": 0}]))]);
    items(&[gauge(&json!([{"timeUnixNano": "7"}]))]).assert_same(&zero);
}

#[test]
#[should_panic(expected = "1 items only on the left")]
fn another_resource_is_a_difference() {
    let here = gauge(&json!([{"timeUnixNano": "7", "asDouble": 3}]));
    let mut there = here.clone();
    there["resourceMetrics"][0]["resource"]["attributes"][0]["value"]["stringValue"] = "other".into();
    items(&[here]).assert_same(&items(&[there]));
}

#[test]
#[should_panic(expected = "1 items only on the left")]
fn another_unit_is_a_difference() {
    let here = gauge(&json!([{"timeUnixNano": "7", "asDouble": 3}]));
    let mut there = here.clone();
    there["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["unit"] = "1".into();
    items(&[here]).assert_same(&items(&[there]));
}

#[test]
fn spans_and_log_records_are_items_too() {
    let span =
        json!({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "AB", "name": "train.step"}]}]}]});
    let log = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"eventName": "run.config"}]}]}]});
    let both = items(&[span, log]);
    assert_eq!(both.of_kind("span")[0]["span"]["traceId"], "ab");
    assert_eq!(both.of_kind("log")[0]["log"]["eventName"], "run.config");
}

#[test]
#[should_panic(expected = "1 items are missing")]
fn single_item_does_not_satisfy_a_duplicated_expectation() {
    let once = items(&[gauge(&json!([{"timeUnixNano": "7", "asDouble": 3}]))]);
    let (of_trainer, others) = once.clone().divide_by_service("trainer");
    assert_eq!((of_trainer.len(), others.len()), (1, 0));
    once.assert_holds(&once);
    let message = gauge(&json!([{"timeUnixNano": "7", "asDouble": 3}]));
    once.assert_holds(&items(&[message.clone(), message]));
}
