//! The duration of the agent's deliveries in a real Prometheus: the agent exposes it in exponential buckets.

use pulsetrain_tests::{Judge, Prometheus, some_or_return, unix_nanos, wait_until};

use crate::prometheus::following::Following;

const DURATION: &str = "pulsetrain_export_duration_seconds";
const TO_PAGE: &str = "pulsetrain_signal=\"metrics\",pulsetrain_sink_name=\"page\"";

#[test]
fn delivery_quantiles_are_computed_from_a_native_histogram() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let mut following = Following::start("", "");
    let target = [("ours", following.agent().address())];
    let prometheus = Prometheus::start(&program, &target, &[]);
    following.write_step(2.5);
    wait_until("the page has deliveries", || on_page(&following).is_some());
    let before = on_page(&following).unwrap();
    let series = format!("{DURATION}{{{TO_PAGE}}}");
    let stored = |function: &str| prometheus.value(&format!("histogram_{function}({series})"));
    wait_until("Prometheus has a scrape of later", || {
        stored("count").is_some_and(|count| count >= before)
    });
    // All values are from one scrape, because each scrape has more deliveries.
    let at = format!("{:.3}", unix_nanos() as f64 / 1e9);
    let value = |expression: &str| prometheus.value(expression).expect("a native histogram");
    let of = |function: &str| value(&format!("histogram_{function}({series} @ {at})"));
    let quantile = |share: f64| value(&format!("histogram_quantile({share}, {series} @ {at})"));
    let count = of("count");
    wait_until("the page has more deliveries", || {
        on_page(&following).is_some_and(|after| after >= count)
    });
    assert!(count >= before, "{count} of {before}");

    let mean = of("sum") / count;
    let (least, median, most) = (quantile(0.0), quantile(0.5), quantile(1.0));
    assert!(
        0.0 < least && least <= median && median <= most,
        "{least} {median} {most}"
    );
    // Half of the deliveries have at least the median duration, so the mean is at least half the median. Buckets are a few
    // percent wide.
    assert!(median <= 2.1 * mean, "a median of {median} with a mean of {mean}");
    assert!(least <= 1.1 * mean && mean <= 1.1 * most, "{least} {mean} {most}");

    let selector = |suffix: &str| format!("{DURATION}{suffix}{{via=\"ours\"}}");
    assert!(prometheus.series(&selector("_bucket")).is_empty());
    assert!(!prometheus.series(&selector("")).is_empty());
    // A metric without exponential buckets keeps its classic buckets.
    assert!(
        !prometheus
            .series("pulsetrain_source_duration_seconds_bucket")
            .is_empty()
    );
    assert!(following.stop().success());
}

/// Text has no exponential buckets: classic buckets have their values, as exactly as their bounds allow.
#[test]
fn delivery_quantiles_are_computed_from_classic_buckets_in_text_scrapes() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let mut following = Following::start("", "");
    let target = [("ours", following.agent().address())];
    let [text, native] = [
        Prometheus::start_without_native_histograms(&program, &target),
        Prometheus::start(&program, &target, &[]),
    ];
    following.write_step(2.5);
    wait_until("the page has deliveries", || on_page(&following).is_some());
    let least = on_page(&following).unwrap();
    let [counted, buckets, complete] = [
        format!("{DURATION}_count{{{TO_PAGE}}}"),
        format!("{DURATION}_bucket{{{TO_PAGE}}}"),
        format!("{DURATION}{{{TO_PAGE}}}"),
    ];
    wait_until("both have a scrape of later", || {
        text.value(&counted).is_some_and(|count| count >= least)
            && native
                .value(&format!("histogram_count({complete})"))
                .is_some_and(|count| count >= least)
    });
    // The two scrape at different times, and every scrape has more deliveries, so the quantiles are only similar.
    for share in [0.1, 0.5, 0.9] {
        let of_text = text
            .value(&format!("histogram_quantile({share}, {buckets})"))
            .unwrap();
        let of_native = native
            .value(&format!("histogram_quantile({share}, {complete})"))
            .unwrap();
        let ratio = of_text / of_native;
        assert!((0.2..5.0).contains(&ratio), "{share}: {of_text} and {of_native}");
    }
    let bounds = text.query(&buckets).len();
    assert!((3..=22).contains(&bounds), "{bounds} buckets");
    let last = text.value(&format!(
        "{DURATION}_bucket{{{TO_PAGE},le=\"+Inf\"}} - on() {counted}"
    ));
    assert_eq!(last, Some(0.0));
    // The counts increase, and no bucket exceeds the total.
    let rate = |name: &str| format!("increase({name}[1m])");
    wait_until("there is a quantile of what was added", || {
        text.value(&format!("histogram_quantile(0.5, {})", rate(&buckets)))
            .is_some_and(f64::is_finite)
    });
    assert!(following.stop().success());
}

/// Returns the number of deliveries on the page in text.
fn on_page(following: &Following) -> Option<f64> {
    let page = following.agent().page();
    let name = format!("{DURATION}_count{{");
    let mut lines = page.lines().filter(|line| line.starts_with(&name));
    let line = lines.find(|line| TO_PAGE.split(',').all(|label| line.contains(label)))?;
    line.rsplit(' ').next()?.parse().ok()
}
