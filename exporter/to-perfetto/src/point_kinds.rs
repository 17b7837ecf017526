//! Converts each kind of point to readings: a number is a value of a counter, a distribution several values, and a state set a
//! row of states.

use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, NumberPoint, NumberValue, SummaryPoint},
    walk::{AnyPoint, Distribution, PointData},
};
use pulsetrain_perfetto::CounterValue;

use super::{
    PerfettoError,
    points::{MetricContext, Points},
    quantiles::{self, Bucket, Limits},
    readings::{EncodedPoint, Reading},
    series::LabelText,
};

/// The unit of a state set: 1 for the current state, 0 for the others.
const STATE: &str = "{state}";

/// The quantiles of a distribution that are drawn.
const QUANTILES: [(f64, &str); 3] = [(0.5, ".p50"), (0.9, ".p90"), (0.99, ".p99")];

/// Returns a quantile in percent, without the error of the multiplication.
fn percent(quantile: f64) -> f64 {
    const DIGITS: f64 = 1e9;
    (quantile * 100.0 * DIGITS).round() / DIGITS
}

impl Points {
    /// Draws a point.
    pub(super) fn draw(
        &mut self,
        around: &MetricContext<'_>,
        point: &AnyPoint<'_, '_>,
        carried: Option<EncodedPoint<'_>>,
    ) -> Result<(), PerfettoError> {
        match point.data {
            PointData::Number(number) => self.number(around, number, carried),
            PointData::Histogram(histogram) => {
                self.distribution(around, point, &quantiles::explicit(histogram)?, carried)
            }
            PointData::ExponentialHistogram(histogram) => {
                self.distribution(around, point, &quantiles::exponential(histogram)?, carried)
            }
            PointData::Summary(summary) => {
                self.distribution(around, point, &[], carried)?;
                self.quantiles(around, summary)
            }
        }
    }

    fn number(
        &mut self,
        around: &MetricContext<'_>,
        point: &NumberPoint<'_>,
        carried: Option<EncodedPoint<'_>>,
    ) -> Result<(), PerfettoError> {
        let time = point.time_unix_nano;
        let Some(value) = point.value() else {
            return self.carry(around, time, carried);
        };
        if around.metric.unit == STATE
            && let Some(state) = only_text(point)?
        {
            self.carry(around, time, carried)?;
            return self.state(around, state, time, value.as_f64());
        }
        let value = match value {
            NumberValue::Int(value) => CounterValue::Int(value),
            NumberValue::Double(value) => CounterValue::Double(value),
        };
        let labels = LabelText::from_attributes(point.attributes)?;
        self.push(around, "", &labels, time, value, carried)
    }

    fn quantiles(
        &mut self,
        around: &MetricContext<'_>,
        point: &SummaryPoint<'_>,
    ) -> Result<(), PerfettoError> {
        let labels = LabelText::from_attributes(point.attributes)?;
        for quantile in point.quantile_values {
            let quantile = quantile?;
            let statistic = format!(".p{}", percent(quantile.quantile));
            let value = CounterValue::Double(quantile.value);
            self.push(around, &statistic, &labels, point.time_unix_nano, value, None)?;
        }
        Ok(())
    }

    fn distribution(
        &mut self,
        around: &MetricContext<'_>,
        point: &AnyPoint<'_, '_>,
        buckets: &[Bucket],
        carried: Option<EncodedPoint<'_>>,
    ) -> Result<(), PerfettoError> {
        let (labels, time) = (LabelText::from_attributes(point.attributes())?, point.time().0);
        let Some(Distribution { count, sum, min, max }) = point.distribution() else {
            return Ok(());
        };
        let limits = Limits::new(count, sum, min, max);
        let settled = MetricContext {
            is_delta: false,
            ..*around
        };
        let mut push = |around: &MetricContext<'_>, statistic: &str, value, carried| {
            self.push(around, statistic, &labels, time, value, carried)
        };
        // The deltas of count and sum are added up; the other statistics apply to one interval.
        push(around, ".count", CounterValue::Int(count as i64), carried)?;
        if let Some(sum) = sum {
            push(around, ".sum", CounterValue::Double(sum), None)?;
        }
        for (statistic, value) in [(".min", min), (".max", max)] {
            if let Some(value) = value {
                push(&settled, statistic, CounterValue::Double(value), None)?;
            }
        }
        for (quantile, statistic) in QUANTILES {
            if let Some(value) = quantiles::estimate(buckets, limits, quantile) {
                push(&settled, statistic, CounterValue::Double(value), None)?;
            }
        }
        if !self.draws_buckets {
            return Ok(());
        }
        self.buckets(&settled, &labels, time, buckets)
    }

    /// Draws the number of values at or below each bound. Besides the bounds of the point's own buckets, it includes those of
    /// earlier points of the series, whose counters would otherwise keep outdated values.
    fn buckets(
        &mut self,
        around: &MetricContext<'_>,
        labels: &LabelText,
        time: u64,
        buckets: &[Bucket],
    ) -> Result<(), PerfettoError> {
        let filled = buckets.iter().filter(|bucket| bucket.count > 0);
        let bounds = self.bounds(around, labels, filled.map(|bucket| bucket.to));
        let mut rest = buckets.iter().peekable();
        let mut total: u64 = 0;
        for bound in bounds.iter().filter(|_| !buckets.is_empty()) {
            while let Some(bucket) = rest.next_if(|bucket| bucket.to <= *bound) {
                total = total.saturating_add(bucket.count);
            }
            let statistic = format!(".le_{bound}");
            let value = CounterValue::Int(total as i64);
            self.push(around, &statistic, labels, time, value, None)?;
        }
        Ok(())
    }

    /// Draws a state set. It has a point for each state; the current one is not 0.
    fn state(
        &mut self,
        around: &MetricContext<'_>,
        state: String,
        time: u64,
        value: f64,
    ) -> Result<(), PerfettoError> {
        if value == 0.0 {
            return Ok(());
        }
        let reading = Reading::State {
            track: self.state_track(around.stream),
            state: self.labels.number(state),
        };
        Ok(self.readings.push((time, 0), |out| reading.pack(out))?)
    }
}

/// Returns the text of the only attribute of a point. Points with more attributes are the states of several things, which
/// one row cannot show.
fn only_text(point: &NumberPoint<'_>) -> Result<Option<String>, WireError> {
    let mut attributes = point.attributes.into_iter();
    let (Some(only), None) = (attributes.next(), attributes.next()) else {
        return Ok(None);
    };
    Ok(match only?.value.unwrap_or_default() {
        AnyValue::String(state) => Some(state.to_str_lossy().into_owned()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn percent_of_a_quantile_has_no_rounding_error() {
        for (quantile, shown) in [
            (0.55, "55"),
            (0.07, "7"),
            (0.999, "99.9"),
            (0.9999999, "99.99999"),
            (1.0, "100"),
        ] {
            assert_eq!(percent(quantile).to_string(), shown);
        }
    }
}
