//! A value with its place in the file, so that what is found out later can be said there too.

use std::ops::Deref;

use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use super::section::{Setting, Shown};

/// A line and a column, both from 1; zero for what is in no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    /// The line.
    pub(crate) line: u64,
    /// The column.
    pub(crate) column: u64,
}

/// A value that knows where it stands. Two are equal where their values are: a moved line changes nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placed<T> {
    /// The value.
    pub(crate) value: T,
    /// Its place.
    pub(crate) spot: Spot,
}

impl<T> Placed<T> {
    /// A value that stands in no file.
    pub(crate) fn nowhere(value: T) -> Self {
        Self {
            value,
            spot: Spot::default(),
        }
    }
}

impl<T: PartialEq> PartialEq for Placed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> Deref for Placed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Placed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::deserialize(deserializer)?;
        Ok(Self {
            value,
            spot: Spot {
                line: referenced.line(),
                column: referenced.column(),
            },
        })
    }
}

impl<T: Setting> Setting for Placed<T> {
    fn shown(&self) -> Shown {
        self.value.shown()
    }
}
