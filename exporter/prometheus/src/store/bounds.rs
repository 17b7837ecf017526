//! The bounds of a histogram with their text, shared by the series of a family.

use std::sync::Arc;

use super::{
    super::go_float,
    Rejection,
    budget::{Budget, Charge},
};

/// The size of one bound: the number, and two boxed texts of up to 24 bytes.
const BOUND_BYTES: usize = size_of::<f64>() + size_of::<Text>() + 48;

/// Bucket bounds in rising order.
#[derive(Debug)]
pub(crate) struct Bounds {
    values: Box<[f64]>,
    texts: Box<[Text]>,
    _charge: Option<Charge>,
}

/// The text of a bound in text 0.0.4 (`1`) and OpenMetrics (`1.0`).
#[derive(Debug)]
struct Text {
    text: Box<str>,
    open_metrics: Box<str>,
}

impl Bounds {
    pub(crate) fn new(values: Vec<f64>) -> Self {
        let text = |bound: &f64| Text {
            text: go_float::text(*bound).into(),
            open_metrics: go_float::open_metrics(*bound).into(),
        };
        let texts = values.iter().map(text).collect();
        Self {
            values: values.into(),
            texts,
            _charge: None,
        }
    }

    /// Returns bounds whose memory is charged to `budget`.
    pub(crate) fn charged(values: Vec<f64>, budget: &Arc<Budget>) -> Result<Self, Rejection> {
        let charge = budget.charge(values.len() * BOUND_BYTES, false)?;
        Ok(Self {
            _charge: Some(charge),
            ..Self::new(values)
        })
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the texts of the bounds, the last one (`+Inf`) included.
    pub(crate) fn texts(&self, open_metrics: bool) -> impl Iterator<Item = &str> {
        self.texts
            .iter()
            .map(move |text| {
                if open_metrics {
                    &*text.open_metrics
                } else {
                    &*text.text
                }
            })
            .chain(std::iter::once("+Inf"))
    }
}

impl PartialEq for Bounds {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}
