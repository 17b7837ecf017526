//! The parser of lines whose mapping names the key of the rank.

use super::{LineFormat, LineParser};

impl<F: LineFormat> LineParser<F> {
    /// Creates a parser of lines whose mapping has the key of the rank. `begin` creates the format of each rank.
    pub(in crate::logs) fn of_mapped_ranks(begin: impl Fn() -> F + Send + 'static) -> Self {
        let format = begin();
        Self {
            begin: Some(Box::new(begin)),
            ..Self::new(format)
        }
    }
}
