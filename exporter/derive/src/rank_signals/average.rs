//! Running averages.

/// An exponential moving average. The newest value has a fixed weight; the first value initializes it.
///
/// Values that are not finite are ignored, because one NaN would stay forever.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ema(Option<f64>);

impl Ema {
    /// The weight of the newest value, as KempnerForge smooths (`metrics/tracker.py`, alpha 0.1).
    const ALPHA: f64 = 0.1;

    /// Adds a value. Returns the average, or `None` before the first finite value.
    pub(super) fn add(&mut self, value: f64) -> Option<f64> {
        if value.is_finite() {
            let before = self.0.unwrap_or(value);
            self.0 = Some(before + Self::ALPHA * (value - before));
        }
        self.0
    }
}

/// The moving average of Surogate: the mean of all values up to a hundred, then exponential with weight 0.1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SurogateAverage {
    pub(super) count: u32,
    pub(super) mean: f64,
}

impl SurogateAverage {
    const CUMULATIVE: u32 = 100;
    const ALPHA: f64 = 0.1;

    /// Adds a value. A value that is not finite is ignored.
    pub(super) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.count = self.count.saturating_add(1);
        let weight = if self.count <= Self::CUMULATIVE {
            1.0 / f64::from(self.count)
        } else {
            Self::ALPHA
        };
        self.mean += weight * (value - self.mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_average_starts_at_the_first_value_and_ignores_nan() {
        let mut average = Ema::default();
        assert_eq!(average.add(f64::NAN), None);
        assert_eq!(average.add(10.0), Some(10.0));
        assert_eq!(average.add(20.0), Some(11.0));
        assert_eq!(average.add(f64::INFINITY), Some(11.0));
        assert_eq!(average.add(1.0), Some(10.0));
    }

    #[test]
    fn surogate_average_is_a_mean_for_hundred_values_then_exponential() {
        let mut average = SurogateAverage::default();
        (1..=100).for_each(|value| average.add(f64::from(value)));
        assert!((average.mean - 50.5).abs() < 1e-9);
        average.add(150.5);
        assert!((average.mean - 60.5).abs() < 1e-9);
    }
}
