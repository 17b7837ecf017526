//! Conversions from the unit of a source to that of the registry.

/// The conversion of a number. Division by 1000 is exact where multiplication by 0.001 is not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Conversion {
    /// The units are equal.
    None,
    /// The source's unit is larger.
    Times(f64),
    /// The source's unit is smaller.
    DividedBy(f64),
    /// The source writes a fraction as a ratio, or in percent: from the first number above 1 on.
    RatioOrPercent,
}

/// The largest ratio: the mean of 32-bit numbers can be slightly above 1.
const MAX_RATIO: f64 = 1.001;

impl Conversion {
    /// Returns the conversion of a number in a series. `is_percent` is the state of the series: whether a number was above
    /// every ratio.
    pub fn in_series(self, value: f64, is_percent: &mut bool) -> Self {
        if self != Self::RatioOrPercent {
            return self;
        }
        *is_percent |= value > MAX_RATIO;
        match *is_percent {
            true => Self::DividedBy(100.0),
            false => Self::None,
        }
    }

    /// Converts a number of the source to the unit of the registry. For [`Self::RatioOrPercent`], the number is a ratio.
    #[inline]
    pub fn apply(self, value: f64) -> f64 {
        match self {
            Self::None | Self::RatioOrPercent => value,
            Self::Times(factor) => value * factor,
            Self::DividedBy(divisor) => value / divisor,
        }
    }

    /// Describes the conversion for the documentation.
    pub(crate) fn text(self) -> String {
        match self {
            Self::None => "as it is".to_owned(),
            Self::Times(factor) => format!("times {factor:e}"),
            Self::DividedBy(divisor) => format!("divided by {divisor:e}"),
            Self::RatioOrPercent => "in percent from the first number above 1 on".to_owned(),
        }
    }
}
