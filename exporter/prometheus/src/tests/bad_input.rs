//! Tests of invalid and hostile input.

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, ArrayValue, any_value::Value},
    metrics::v1::metric::Data,
};

use super::{otlp::*, *};

#[test]
fn series_over_the_limit_are_rejected_and_others_continue() {
    let mut world = World::with(&PrometheusConfig {
        series_limit: 2,
        ..PrometheusConfig::default()
    });
    let three = |time| {
        let points = ["1", "2", "3"]
            .map(|a| number(0, time, 1.0, &[("a", a)]))
            .to_vec();
        one(unitless("g", gauge(points)))
    };
    assert_eq!(world.rejected(three(T0)), [(Rejection::SeriesLimit, 1)]);
    assert_eq!(world.rejected(three(T0 + 1)), [(Rejection::SeriesLimit, 1)]);
    assert_eq!(world.series(), 2);
    // The end of a series frees its slot.
    world.take(one(end("g", T0 + 2, &[("a", "1")])));
    world.take(one(simple("g", T0 + 3, 1.0, &[("a", "3")])));
}

#[test]
fn metric_that_reports_the_limit_has_a_reserve() {
    let mut world = World::with(&PrometheusConfig {
        series_limit: 1,
        ..PrometheusConfig::default()
    });
    let of = |name, count: usize| {
        let points = (0..count).map(|a| number(0, T0, 1.0, &[("a", &a.to_string())]));
        one(unitless(name, gauge(points.collect())))
    };
    assert_eq!(world.rejected(of("g", 2)), [(Rejection::SeriesLimit, 1)]);
    world.take(of("pulsetrain.dropped_items", 20));
    // The reserve for internal series is limited too, regardless of the sender.
    assert_eq!(
        world.rejected(of("pulsetrain.x", 1_000)),
        [(Rejection::SeriesLimit, 20)]
    );
    assert_eq!(world.series(), 1_001);
}

#[test]
fn metric_name_keeps_its_first_type() {
    let mut world = World::new();
    world.take(one(simple("x.total", T0, 1.0, &[])));
    let counter = one(unitless(
        "x",
        sum(CUMULATIVE, true, vec![number(T0, T0, 1.0, &[])]),
    ));
    assert_eq!(world.rejected(counter), [(Rejection::TypeConflict, 1)]);
    // A histogram's samples have other names.
    world.take(one(simple("h_count", T0, 1.0, &[])));
    let histogram = histogram(CUMULATIVE, buckets(T0, T0, &[], &[1], 1.0));
    assert_eq!(
        world.rejected(one(unitless("h", histogram))),
        [(Rejection::TypeConflict, 1)]
    );
    let info = one(simple("target.info", T0, 1.0, &[]));
    assert_eq!(world.rejected(info), [(Rejection::TypeConflict, 1)]);
}

/// OpenMetrics has a counter under its name without `_total`, and reserves `_created`.
#[test]
fn openmetrics_suffixes_reserve_names_across_types() {
    let counter = |name| unitless(name, sum(CUMULATIVE, true, vec![number(T0, T0, 1.0, &[])]));
    let mut world = World::new();
    world.take(one(counter("requests")));
    for taken in ["requests", "requests.created", "target", "target.info"] {
        let batch = one(simple(taken, T0, 1.0, &[]));
        assert_eq!(world.rejected(batch), [(Rejection::TypeConflict, 1)], "{taken}");
    }
    world.take(one(simple("jobs", T0, 1.0, &[])));
    assert_eq!(
        world.rejected(one(counter("jobs"))),
        [(Rejection::TypeConflict, 1)]
    );
    let page = world.page(Format::OpenMetrics, Escaping::Underscores);
    let page = String::from_utf8(page).expect("a page is UTF-8");
    assert_eq!(page.matches("# TYPE").count(), 2, "{page}");
}

/// A client without UTF-8 gets the first of two families with the same escaped name, and the first of two
/// such series.
#[test]
fn names_with_equal_escapes_appear_once_without_utf8() {
    let mut world = World::with(&PrometheusConfig {
        translation: crate::Translation::NoTranslation,
        ..PrometheusConfig::default()
    });
    let histogram = histogram(CUMULATIVE, buckets(T0, T0, &[], &[1], 1.0));
    world.take(run(
        "r",
        vec![
            simple("a.b", T0, 1.0, &[]),
            simple("a_b", T0, 2.0, &[]),
            unitless("h", histogram),
            simple("h.count", T0, 3.0, &[]),
            simple("x", T0, 1.0, &[("l.m", "1")]),
            simple("x", T0, 2.0, &[("l_m", "1")]),
        ],
    ));
    for format in [Format::Text, Format::OpenMetrics] {
        let page = |escaping| String::from_utf8(world.page(format, escaping)).expect("a page is UTF-8");
        let (escaped, all) = (page(Escaping::Underscores), page(Escaping::AllowUtf8));
        for (sample, times) in [("\na_b{", 1), ("\nh_count{", 1), ("\nx{", 1)] {
            assert_eq!(escaped.matches(sample).count(), times, "{sample} {escaped}");
        }
        assert!(all.contains("\n{\"a.b\",") && all.contains("\na_b{"), "{all}");
        assert_eq!(all.matches("\nx{").count(), 2, "{all}");
    }
}

/// OpenMetrics 1.0: "If the sum is there, so is the count", and no sum with negative bounds.
#[test]
fn histogram_without_a_valid_sum_has_no_count_in_openmetrics() {
    for (bounds, total) in [
        (&[1.0][..], None),
        (&[-1.0], Some(1.0)),
        (&[1.0], Some(-1.0)),
        (&[1.0], Some(f64::NAN)),
    ] {
        let mut world = World::new();
        let mut point = buckets(T0, T0, bounds, &[1, 2], 0.0);
        point.sum = total;
        world.take(one(unitless("h", histogram(CUMULATIVE, point))));
        let page =
            |format| String::from_utf8(world.page(format, Escaping::Underscores)).expect("a page is UTF-8");
        let (text, open_metrics) = (page(Format::Text), page(Format::OpenMetrics));
        assert!(text.contains("h_count{"), "{text}");
        assert_eq!(text.contains("h_sum{"), total.is_some(), "{text}");
        assert!(
            !open_metrics.contains("h_count") && !open_metrics.contains("h_sum"),
            "{open_metrics}"
        );
        assert!(open_metrics.contains("le=\"+Inf\"} 3"), "{open_metrics}");
    }
}

#[test]
fn negative_and_nan_counters_are_rejected() {
    let mut world = World::new();
    for value in [-1.0, f64::NAN, f64::NEG_INFINITY] {
        let counter = sum(CUMULATIVE, true, vec![number(T0, T0, value, &[])]);
        let batch = one(unitless("c", counter));
        assert_eq!(world.rejected(batch), [(Rejection::Malformed, 1)], "{value}");
    }
    // A sum that may decrease is a gauge.
    let gauge = sum(CUMULATIVE, false, vec![number(T0, T0, -1.0, &[])]);
    world.take(one(unitless("g", gauge)));
}

/// Prometheus rejects a page with a native histogram whose count differs from the sum of its buckets.
#[test]
fn histogram_count_is_the_sum_of_its_buckets() {
    let mut world = World::new();
    let mut wrong = exponential(CUMULATIVE, 0, 0, &[1, 2]);
    if let Data::ExponentialHistogram(histogram) = &mut wrong {
        histogram.data_points[0].count = 100;
    }
    world.take(one(unitless("n", wrong)));
    assert_eq!(
        world.samples("n_count"),
        ["n_count{train_run_id=\"r\"} 6"],
        "three of them are zero"
    );
    let huge = exponential(CUMULATIVE, 0, 0, &[u64::MAX, 1]);
    let batch = one(unitless("m", huge));
    assert_eq!(world.rejected(batch), [(Rejection::Malformed, 1)]);
    // The page writes +Inf itself.
    let infinite = buckets(
        T0,
        T0,
        &[f64::NEG_INFINITY, 1.0, f64::INFINITY],
        &[1, 2, 3, 4],
        1.0,
    );
    world.take(one(unitless("h", histogram(CUMULATIVE, infinite))));
    assert_eq!(
        world.samples("h_bucket"),
        [
            "h_bucket{train_run_id=\"r\",le=\"1\"} 3",
            "h_bucket{train_run_id=\"r\",le=\"+Inf\"} 10"
        ]
    );
}

#[test]
fn names_that_collide_share_a_family_but_no_series() {
    let mut world = World::new();
    world.take(one(simple("a.b", T0, 1.0, &[("l", "1")])));
    world.take(one(simple("a_b", T0, 2.0, &[("l", "2")])));
    let same = one(simple("a_b", T0 + 1, 3.0, &[("l", "1")]));
    assert_eq!(world.rejected(same), [(Rejection::NameCollision, 1)]);
    assert_eq!(
        world.samples("a_b"),
        [
            "a_b{l=\"1\",train_run_id=\"r\"} 1",
            "a_b{l=\"2\",train_run_id=\"r\"} 2"
        ]
    );
}

#[test]
fn attribute_keys_that_collide_share_a_label_with_both_values() {
    let mut world = World::new();
    world.take(one(simple("g", T0, 1.0, &[("a_b", "2"), ("a.b", "1")])));
    assert_eq!(world.samples("g"), ["g{a_b=\"1;2\",train_run_id=\"r\"} 1"]);
}

#[test]
fn reserved_labels_are_rejected() {
    let mut world = World::new();
    let sent = |key: &str| {
        let mut point = buckets(T0, T0, &[1.0], &[1, 1], 2.0);
        point.attributes = attributes(&[(key, "7"), ("job", "mine"), ("empty", "")]);
        from(
            &[("service.name", "real")],
            vec![unitless("h", histogram(CUMULATIVE, point))],
        )
    };
    for reserved in ["le", "__name__", "..name..", "_.name_:"] {
        assert_eq!(
            world.rejected(sent(reserved)),
            [(Rejection::ReservedLabel, 1)],
            "{reserved}"
        );
    }
    world.take(sent("quantile"));
    assert_eq!(
        world.samples("h_count"),
        ["h_count{job=\"real\",quantile=\"7\"} 2"]
    );
}

#[test]
fn resource_attribute_cannot_override_the_metric_name() {
    let mut world = World::with(&PrometheusConfig {
        resource_labels: vec!["..name..".to_owned()],
        ..PrometheusConfig::default()
    });
    let resource = [("service.name", "real"), ("..name..", "evil"), ("zone", "a")];
    let batch = from(&resource, vec![simple("g", T0, 1.0, &[])]);
    assert_eq!(world.rejected(batch), [(Rejection::ReservedLabel, 1)]);

    let mut world = World::new();
    world.take(from(&resource, vec![simple("g", T0, 1.0, &[])]));
    assert_eq!(
        world.samples("target_info"),
        ["target_info{job=\"real\",zone=\"a\"} 1"]
    );
}

#[test]
fn labels_with_equal_escapes_are_joined_for_clients_without_utf8() {
    let mut world = World::with(&PrometheusConfig {
        translation: crate::Translation::NoTranslation,
        ..PrometheusConfig::default()
    });
    world.take(one(simple(
        "g",
        T0,
        1.0,
        &[("a_b", "2"), ("a.b", "1"), ("c", "x\"y")],
    )));
    // No client may get a second name of the series, under any scheme.
    for reserved in ["..name..", "_name_", ".:name__"] {
        let batch = one(simple("g", T0, 1.0, &[(reserved, "evil")]));
        assert_eq!(
            world.rejected(batch),
            [(Rejection::ReservedLabel, 1)],
            "{reserved}"
        );
    }
    let page = |escaping| String::from_utf8(world.page(Format::Text, escaping)).expect("a page is UTF-8");
    let underscores = page(Escaping::Underscores);
    assert!(
        underscores.contains("g{a_b=\"1;2\",c=\"x\\\"y\",train_run_id=\"r\"} 1\n"),
        "{underscores}"
    );
    let values = page(Escaping::Values);
    assert!(values.contains("g{U__a_2e_b=\"1\",a_b=\"2\",c="), "{values}");
}

#[test]
fn page_with_arbitrary_label_values_can_be_parsed() {
    let mut world = World::new();
    world.take(one(simple("g", T0, 1.0, &[("a", "q\"b\\s\nn\r\0,}")])));
    assert_eq!(
        world.samples("g"),
        ["g{a=\"q\\\"b\\\\s\\nn\r\u{fffd},}\",train_run_id=\"r\"} 1"]
    );
}

#[test]
fn invalid_utf8_bytes_are_replaced_in_labels() {
    let batch = one(simple("g", T0, 1.0, &[("a", "<<<"), ("b", "<<<")])).encode();
    let torn: Vec<u8> = batch
        .bytes()
        .iter()
        .map(|byte| if *byte == b'<' { 0xff } else { *byte })
        .collect();
    let torn = pulsetrain_pipeline::Batch::new(pulsetrain_otlp::Signal::Metrics, 1, torn);
    let mut world = World::new();
    let delivery = now(pulsetrain_pipeline::Sink::deliver(&mut world.sink, &torn));
    assert_eq!(delivery, pulsetrain_pipeline::Delivery::Delivered);
    assert_eq!(
        world.samples("g"),
        ["g{a=\"\u{fffd}\u{fffd}\u{fffd}\",b=\"\u{fffd}\u{fffd}\u{fffd}\",train_run_id=\"r\"} 1"]
    );
}

#[test]
fn attribute_values_of_every_type_become_label_text() {
    let mut point = number(0, T0, 1.0, &[]);
    let text = |text: &str| AnyValue {
        value: Some(Value::StringValue(text.into())),
    };
    let list = Value::ArrayValue(ArrayValue {
        values: vec![
            text("x"),
            AnyValue {
                value: Some(Value::IntValue(1)),
            },
        ],
    });
    point.attributes = vec![
        attribute("a", Value::BoolValue(true)),
        attribute("b", Value::IntValue(-7)),
        attribute("c", Value::DoubleValue(0.5)),
        attribute("d", Value::BytesValue(vec![1, 2])),
        attribute("e", list),
    ];
    let mut world = World::new();
    world.take(from(&[], vec![unitless("g", gauge(vec![point]))]));
    assert_eq!(
        world.samples("g"),
        ["g{a=\"true\",b=\"-7\",c=\"0.5\",d=\"AQI=\",e=\"[\\\"x\\\",1]\"} 1"]
    );
}

#[test]
fn malformed_histogram_buckets_are_rejected() {
    let mut world = World::new();
    for (bounds, counts) in [
        (&[1.0, 2.0][..], &[1, 2][..]),
        (&[2.0, 1.0], &[1, 2, 3]),
        (&[1.0, 1.0], &[1, 2, 3]),
        (&[f64::NAN], &[1, 2]),
        (&[1.0], &[]),
    ] {
        let point = buckets(T0, T0, bounds, counts, 1.0);
        let batch = one(unitless("h", histogram(CUMULATIVE, point)));
        assert_eq!(
            world.rejected(batch),
            [(Rejection::Malformed, 1)],
            "{bounds:?} {counts:?}"
        );
    }
    let far = one(unitless("n", exponential(CUMULATIVE, 0, i32::MAX, &[1, 1])));
    assert_eq!(world.rejected(far), [(Rejection::Malformed, 1)]);
}

#[test]
fn megabyte_label_and_names_without_legal_characters_are_rejected() {
    let mut world = World::new();
    let long = "x".repeat(1 << 20);
    let batch = one(simple("g", T0, 1.0, &[("a", &long)]));
    assert_eq!(world.rejected(batch), [(Rejection::LabelsTooLong, 1)]);
    let batch = run("r", vec![simple("花火", T0, 1.0, &[]), simple("", T0, 1.0, &[])]);
    assert_eq!(world.rejected(batch), [(Rejection::BadName, 2)]);
}

#[test]
fn truncated_batch_never_panics() {
    let batch = run(
        "r",
        vec![
            metric("n", "s", "d", exponential(CUMULATIVE, 3, 0, &[1])),
            simple("g", T0, 1.0, &[("a", "b")]),
        ],
    );
    let bytes = batch.encode().bytes().clone();
    let mut world = World::new();
    for end in 0..bytes.len() {
        let torn = pulsetrain_pipeline::Batch::new(pulsetrain_otlp::Signal::Metrics, 2, bytes.slice(..end));
        let _ = now(pulsetrain_pipeline::Sink::deliver(&mut world.sink, &torn));
        let _ = world.page(Format::OpenMetrics, Escaping::AllowUtf8);
    }
}
