//! What one tag was found to mean: the row that knows it, and the attributes that its varying parts become.

use pulsetrain_otlp::write::Attribute;
use pulsetrain_semconv as semconv;

use super::{pattern, row::TagRow};
use crate::attribute_part::Part;

/// A row that knows a tag.
#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) row: &'static TagRow,
    /// The varying parts of the tag, if its points carry some.
    captured: Vec<(&'static semconv::Attribute, Part)>,
}

impl Meaning {
    /// What `rows` make of a tag; the first row that fits counts.
    pub(super) fn find<'r>(mut rows: impl Iterator<Item = &'static TagRow> + 'r, tag: &str) -> Option<Self> {
        rows.find_map(|row| Self::by(row, tag))
    }

    fn by(row: &'static TagRow, tag: &str) -> Option<Self> {
        let parts = pattern::parts(row.pattern, tag)?;
        let captured = row.captures.iter().map(|(number, attribute)| {
            let part = parts.get(*number)?;
            Some((*attribute, Part::of(attribute, part)?))
        });
        Some(Self {
            row,
            captured: captured.collect::<Option<_>>()?,
        })
    }

    /// Calls `record` with the attributes of the tag's points.
    #[inline]
    pub(super) fn with_attributes<T>(&self, record: impl FnOnce(&[Attribute<'_>]) -> T) -> T {
        if self.captured.is_empty() {
            return record(self.row.attributes);
        }
        let captured = self
            .captured
            .iter()
            .map(|(attribute, part)| (*attribute, part.value()));

        let all: Vec<Attribute<'_>> = captured.chain(self.row.attributes.iter().copied()).collect();
        record(&all)
    }
}
