//! Robust statistics over the newest samples of a series: medians, which single outliers do not change.

use std::collections::VecDeque;

/// Scale that makes the median absolute deviation of normal noise equal to its standard deviation: 1 / Φ⁻¹(3/4).
const MAD_TO_DEVIATION: f64 = 1.4826;

/// The newest samples of a series, at most a fixed number.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    values: VecDeque<f64>,
    capacity: usize,
}

impl Samples {
    /// Creates a window of at most `capacity` samples.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            values: VecDeque::new(),
            capacity,
        }
    }

    /// Adds a sample, and evicts the oldest from a full window. NaN and infinity are ignored.
    pub(crate) fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.values.len() >= self.capacity {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    /// Returns the number of samples.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether the window is full.
    pub(crate) fn is_full(&self) -> bool {
        self.values.len() >= self.capacity
    }

    /// Removes all samples.
    pub(crate) fn clear(&mut self) {
        self.values.clear();
    }

    /// Returns the median, or `None` if the window is empty.
    pub(crate) fn median(&self) -> Option<f64> {
        median(self.values.iter().copied())
    }

    /// Returns the greatest sample.
    pub(crate) fn max(&self) -> Option<f64> {
        self.values.iter().copied().reduce(f64::max)
    }

    /// Returns median and standard deviation, the latter estimated from the median absolute deviation.
    pub(crate) fn center_and_spread(&self) -> Option<(f64, f64)> {
        let center = self.median()?;
        let deviation = median(self.values.iter().map(|value| (value - center).abs()))?;
        Some((center, deviation * MAD_TO_DEVIATION))
    }
}

/// Returns the median of finite values, or `None` if there are none.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    if values.is_empty() {
        return None;
    }
    let odd = values.len() % 2 == 1;
    let middle = values.len() / 2;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if odd {
        return Some(*upper);
    }
    let lower = below.iter().copied().reduce(f64::max)?;
    Some(lower + (*upper - lower) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(capacity: usize, values: &[f64]) -> Samples {
        let mut samples = Samples::new(capacity);
        values.iter().for_each(|value| samples.push(*value));
        samples
    }

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0, 3.0, 2.0].into_iter()), Some(2.5));
        assert_eq!(median([f64::NAN].into_iter()), None);
    }

    #[test]
    fn full_window_drops_the_oldest_sample() {
        let samples = samples(3, &[100.0, 1.0, f64::NAN, 2.0, 3.0]);
        assert!(samples.is_full());
        assert_eq!(
            (samples.len(), samples.median(), samples.max()),
            (3, Some(2.0), Some(3.0))
        );
    }

    #[test]
    fn single_outlier_does_not_change_the_spread() {
        let samples = samples(9, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1e9]);
        assert_eq!(samples.center_and_spread(), Some((5.0, 2.0 * MAD_TO_DEVIATION)));
    }
}
