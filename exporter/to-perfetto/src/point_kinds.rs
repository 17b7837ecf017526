//! Converts each kind of point to readings: a number is a value of a counter, a distribution several values, and a state set a
//! row of states.

use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, ExponentialHistogramPoint, HistogramPoint, NumberPoint, NumberValue, SummaryPoint},
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

/// A point of a distribution.
struct Distribution {
    time: u64,
    labels: LabelText,
    count: u64,
    sum: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    limits: Limits,
    buckets: Vec<Bucket>,
}

/// Creates the distribution from a point of any of the three kinds: their common fields have the same names.
macro_rules! distribution {
    ($point:expr, $sum:expr, ($min:expr, $max:expr), $buckets:expr) => {
        Distribution {
            time: $point.time_unix_nano,
            labels: LabelText::of($point.attributes)?,
            count: $point.count,
            sum: $sum,
            min: $min,
            max: $max,
            limits: Limits::of($point.count, $sum, $min, $max),
            buckets: $buckets,
        }
    };
}

impl Points {
    pub(super) fn number(
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
        let labels = LabelText::of(point.attributes)?;
        self.push(around, "", &labels, time, value, carried)
    }

    pub(super) fn histogram(
        &mut self,
        around: &MetricContext<'_>,
        point: &HistogramPoint<'_>,
        carried: Option<EncodedPoint<'_>>,
    ) -> Result<(), PerfettoError> {
        let distribution = distribution!(
            point,
            point.sum,
            (point.min, point.max),
            quantiles::explicit(point)?
        );
        self.distribution(around, &distribution, carried)
    }

    pub(super) fn exponential(
        &mut self,
        around: &MetricContext<'_>,
        point: &ExponentialHistogramPoint<'_>,
        carried: Option<EncodedPoint<'_>>,
    ) -> Result<(), PerfettoError> {
        let distribution = distribution!(
            point,
            point.sum,
            (point.min, point.max),
            quantiles::exponential(point)?
        );
        self.distribution(around, &distribution, carried)
    }

    pub(super) fn summary(
        &mut self,
        around: &MetricContext<'_>,
        point: &SummaryPoint<'_>,
        carried: Option<EncodedPoint<'_>>,
    ) -> Result<(), PerfettoError> {
        let distribution = distribution!(point, Some(point.sum), (None, None), Vec::new());
        self.distribution(around, &distribution, carried)?;
        for quantile in point.quantile_values {
            let quantile = quantile?;
            let statistic = format!(".p{}", percent(quantile.quantile));
            let value = CounterValue::Double(quantile.value);
            self.push(
                around,
                &statistic,
                &distribution.labels,
                point.time_unix_nano,
                value,
                None,
            )?;
        }
        Ok(())
    }

    fn distribution(
        &mut self,
        around: &MetricContext<'_>,
        point: &Distribution,
        carried: Option<EncodedPoint<'_>>,
    ) -> Result<(), PerfettoError> {
        let settled = MetricContext {
            is_delta: false,
            ..*around
        };
        let mut push = |around: &MetricContext<'_>, statistic: &str, value, carried| {
            self.push(around, statistic, &point.labels, point.time, value, carried)
        };
        // The deltas of count and sum are added up; the other statistics apply to one interval.
        push(around, ".count", CounterValue::Int(point.count as i64), carried)?;
        if let Some(sum) = point.sum {
            push(around, ".sum", CounterValue::Double(sum), None)?;
        }
        for (statistic, value) in [(".min", point.min), (".max", point.max)] {
            if let Some(value) = value {
                push(&settled, statistic, CounterValue::Double(value), None)?;
            }
        }
        for (quantile, statistic) in QUANTILES {
            if let Some(value) = quantiles::estimate(&point.buckets, point.limits, quantile) {
                push(&settled, statistic, CounterValue::Double(value), None)?;
            }
        }
        if !self.draws_buckets {
            return Ok(());
        }
        self.buckets(&settled, point)
    }

    /// Draws the number of values at or below each bound. Besides the bounds of the point's own buckets, it includes those of
    /// earlier points of the series, whose counters would otherwise keep outdated values.
    fn buckets(&mut self, around: &MetricContext<'_>, point: &Distribution) -> Result<(), PerfettoError> {
        let filled = point.buckets.iter().filter(|bucket| bucket.count > 0);
        let bounds = self.bounds(around, &point.labels, filled.map(|bucket| bucket.to));
        let mut buckets = point.buckets.iter().peekable();
        let mut total: u64 = 0;
        for bound in bounds.iter().filter(|_| !point.buckets.is_empty()) {
            while let Some(bucket) = buckets.next_if(|bucket| bucket.to <= *bound) {
                total = total.saturating_add(bucket.count);
            }
            let statistic = format!(".le_{bound}");
            let value = CounterValue::Int(total as i64);
            self.push(around, &statistic, &point.labels, point.time, value, None)?;
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
