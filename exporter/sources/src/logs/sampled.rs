//! What a format makes of some text, for the tests of the formats.

use std::cell::RefCell;

use pulsetrain_otlp::{
    Signal,
    view::{Message, MetricData, MetricsData},
    write::Encoded,
};

use super::{LogFormat, LogReader, ReadLimits, ReadTime};
use crate::{Counts, Recorder, Run, Skipped};

/// Everything that came of a text.
pub(super) struct Sampled {
    pub(super) counts: Counts,
    pub(super) skipped: Skipped,
    batches: Vec<Encoded>,
}

/// 2026-11-22 00:00:00 UTC.
const NEAR: u64 = 1_795_305_600_000_000_000;

impl Sampled {
    /// Reads a text as a finished file.
    pub(super) fn read(format: &LogFormat, text: &str) -> Self {
        let batches = RefCell::new(Vec::new());
        let mut recorder = Recorder::new(Run::default(), |batch| batches.borrow_mut().push(batch));
        let mut reader = LogReader::new(format, ReadLimits::default());
        reader.set_time(ReadTime {
            unix_nanos: NEAR,
            is_live: false,
        });
        // In pieces, so that every test cuts lines too.
        text.as_bytes()
            .chunks(7)
            .for_each(|piece| reader.push(piece, &mut recorder));
        reader.finish(&mut recorder);
        let (counts, skipped) = recorder.finish();
        Self {
            counts,
            skipped,
            batches: batches.into_inner(),
        }
    }

    /// The values of a metric's points, in order; of a histogram what its sum grew by.
    pub(super) fn values(&self, name: &str) -> Vec<f64> {
        let mut values = Vec::new();
        for batch in self
            .batches
            .iter()
            .filter(|batch| batch.signal == Signal::Metrics)
        {
            let data = MetricsData::decode(&batch.bytes).unwrap();
            for resource in data.resource_metrics.iter().map(Result::unwrap) {
                for scope in resource.scope_metrics.iter().map(Result::unwrap) {
                    for metric in scope
                        .metrics
                        .iter()
                        .map(Result::unwrap)
                        .filter(|metric| metric.name == name)
                    {
                        collect(metric.data(), &mut values);
                    }
                }
            }
        }
        values
    }
}

fn collect(data: Option<MetricData<'_>>, values: &mut Vec<f64>) {
    let numbers = match data {
        Some(MetricData::Gauge(gauge)) => gauge.data_points,
        Some(MetricData::Sum(sum)) => sum.data_points,
        Some(MetricData::Histogram(histogram)) => {
            let sums: Vec<f64> = histogram
                .data_points
                .iter()
                .filter_map(|point| point.unwrap().sum)
                .collect();
            let before = std::iter::once(0.0).chain(sums.iter().copied());
            values.extend(sums.iter().zip(before).map(|(sum, before)| sum - before));
            return;
        }
        other => panic!("no points that are numbers: {other:?}"),
    };
    values.extend(
        numbers
            .iter()
            .map(|point| point.unwrap().value().unwrap().as_f64()),
    );
}
