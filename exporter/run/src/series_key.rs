//! The identity of a series: its metric and its attributes.

use pulsetrain_otlp::{
    WireError,
    view::{KeyValue, Repeated},
};
use xxhash_rust::xxh3::xxh3_64;

/// The identity of a series, as a hash: the name of the metric and a set of attributes, in any order.
///
/// An attribute is compared by its bytes, because a writer encodes equal attributes alike. Two of a million series share a key with
/// a probability of 3e-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesKey(u64);

impl SeriesKey {
    /// Returns the key of a metric's series without attributes.
    #[inline]
    pub fn new(metric: &[u8]) -> Self {
        Self(xxh3_64(metric))
    }

    /// Returns the key with one more attribute, an encoded `KeyValue`.
    #[inline]
    #[must_use]
    pub fn with_attribute(self, encoded: &[u8]) -> Self {
        // A sum does not depend on the order.
        Self(self.0.wrapping_add(xxh3_64(encoded)))
    }

    /// Returns the key with more attributes: of the point, and of the resource where resources share a table.
    ///
    /// # Errors
    /// The attributes are not valid protobuf.
    #[inline]
    pub fn with_attributes(self, attributes: Repeated<'_, KeyValue<'_>>) -> Result<Self, WireError> {
        let mut key = self;
        let mut attributes = attributes.iter();
        while let Some(encoded) = attributes.next_bytes() {
            key = key.with_attribute(encoded?);
        }
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_depends_on_metric_and_attributes_but_not_on_their_order() {
        let key = SeriesKey::new(b"loss");
        assert_ne!(key, SeriesKey::new(b"norm"));
        assert_ne!(key, key.with_attribute(b"a=1"));
        assert_ne!(key.with_attribute(b"a=1"), key.with_attribute(b"a=2"));
        assert_eq!(
            key.with_attribute(b"a=1").with_attribute(b"b=2"),
            key.with_attribute(b"b=2").with_attribute(b"a=1")
        );
        assert_eq!(key.with_attributes(Repeated::default()), Ok(key));
    }
}
