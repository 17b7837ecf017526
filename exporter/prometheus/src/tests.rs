//! Batches in, pages out: tests of the endpoint without the network.

mod bad_input;
mod counters;
mod endings;
mod golden;
mod limits;
mod otlp;

use self::otlp::Batches;
use super::{
    PrometheusConfig, PrometheusSink, Rejection,
    escape::Escaping,
    render::{Format, Page},
};

/// A sink under test.
struct World {
    sink: PrometheusSink,
}

impl World {
    fn new() -> Self {
        Self::with(&PrometheusConfig::default())
    }

    fn with(config: &PrometheusConfig) -> Self {
        Self {
            sink: PrometheusSink::new(config),
        }
    }

    /// Delivers batches and expects no rejection.
    fn take(&mut self, batches: Batches) {
        assert_eq!(self.rejected(batches), []);
    }

    /// Delivers batches and returns the rejected points.
    fn rejected(&mut self, batches: Batches) -> Vec<(Rejection, u64)> {
        let before = self.sink.store().counts().rejected;
        let delivery = otlp::now(pulsetrain_pipeline::Sink::deliver(
            &mut self.sink,
            &batches.encode(),
        ));
        let after = self.sink.store().counts().rejected;
        let refused: Vec<_> = after
            .into_iter()
            .zip(before)
            .map(|((rejection, after), (_, before))| (rejection, after - before))
            .filter(|(_, points)| *points > 0)
            .collect();
        let rejected = match delivery {
            pulsetrain_pipeline::Delivery::Delivered => 0,
            pulsetrain_pipeline::Delivery::Partial { rejected, .. } => rejected,
            other => panic!("{other:?}"),
        };
        assert_eq!(rejected, refused.iter().map(|(_, points)| points).sum::<u64>());
        refused
    }

    fn page(&self, format: Format, escaping: Escaping) -> Vec<u8> {
        let mut page = Page::new(&self.sink.store(), Vec::new(), format, escaping);
        let mut out = Vec::new();
        while page.push_piece(&mut out) {}
        out
    }

    /// Returns the lines of the text page that are samples of `name`.
    fn samples(&self, name: &str) -> Vec<String> {
        let mut out = Vec::new();
        self.sink.store().write_text(&mut out);
        let text = String::from_utf8(out).expect("a page is UTF-8");
        let of_name = |line: &&str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        };
        text.lines().filter(of_name).map(str::to_owned).collect()
    }

    fn series(&self) -> usize {
        self.sink.store().counts().series
    }
}

#[test]
fn page_of_large_series_is_complete_in_small_chunks() {
    let long = "x".repeat(10_000);
    let names: Vec<String> = (0..300).map(|number| format!("{long}{number}")).collect();
    let series = |name: &String| otlp::simple("g", otlp::T0, 1.0, &[("name", name)]);
    let mut world = World::new();
    world.take(otlp::run("r", names.iter().map(series).collect()));
    let samples = world.samples("g");
    assert_eq!(samples.len(), names.len());
    let is_there = |name: &String| samples.iter().any(|sample| sample.contains(&format!("{name}\"")));
    assert!(names.iter().all(is_there));

    let mut page = Page::new(
        &world.sink.store(),
        Vec::new(),
        Format::OpenMetrics,
        Escaping::AllowUtf8,
    );
    let mut piece = Vec::new();
    while page.push_piece(&mut piece) {
        assert!(piece.len() < 80_000, "{}", piece.len());
        piece.clear();
    }
}
