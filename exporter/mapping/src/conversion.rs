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
    /// The source writes a fraction as a ratio or in percent; a value above 1 is in percent.
    PercentAboveOne,
}

impl Conversion {
    /// Converts a number of the source to the unit of the registry.
    #[inline]
    pub fn apply(self, value: f64) -> f64 {
        match self {
            Self::None => value,
            Self::Times(factor) => value * factor,
            Self::DividedBy(divisor) => value / divisor,
            Self::PercentAboveOne if value.abs() > 1.0 => value / 100.0,
            Self::PercentAboveOne => value,
        }
    }

    /// Describes the conversion for the documentation.
    pub(crate) fn text(self) -> String {
        match self {
            Self::None => "as it is".to_owned(),
            Self::Times(factor) => format!("times {factor:e}"),
            Self::DividedBy(divisor) => format!("divided by {divisor:e}"),
            Self::PercentAboveOne => "a number above 1 is in percent".to_owned(),
        }
    }
}
