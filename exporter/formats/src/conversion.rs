//! From the unit of a source to that of the registry.

/// What is done to a number at the ingress. Dividing by 1000 is exact where multiplying by 0.001 is not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Conversion {
    /// The units are the same.
    None,
    /// The source's unit is larger.
    Times(f64),
    /// The source's unit is smaller.
    DividedBy(f64),
    /// The source writes a share as a ratio or in percent, and a share is never above 1.
    PercentAboveOne,
}

impl Conversion {
    /// A number of the source in our unit.
    #[inline]
    pub(crate) fn apply(self, value: f64) -> f64 {
        match self {
            Self::None => value,
            Self::Times(factor) => value * factor,
            Self::DividedBy(divisor) => value / divisor,
            Self::PercentAboveOne if value.abs() > 1.0 => value / 100.0,
            Self::PercentAboveOne => value,
        }
    }
}
