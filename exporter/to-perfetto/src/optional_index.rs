//! An optional index in four bytes: there are several for every span.

/// An index in a list, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OptionalIndex(u32);

impl OptionalIndex {
    /// No index; no list is that long.
    pub(super) const NONE: Self = Self(u32::MAX);

    #[inline]
    pub(super) fn get(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0)
    }
}

impl From<Option<u32>> for OptionalIndex {
    #[inline]
    fn from(place: Option<u32>) -> Self {
        place.map_or(Self::NONE, Self)
    }
}

impl From<u32> for OptionalIndex {
    #[inline]
    fn from(place: u32) -> Self {
        Self(place)
    }
}
