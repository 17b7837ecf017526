//! Numbers of records and items. As totals since the queue was created, they number the records.

use std::ops::{Add, AddAssign, Sub, SubAssign};

use pulsetrain_otlp::Signal;

/// A number of records, and the number of their items by signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// The number of records.
    pub records: u64,
    /// The number of spans, points and log records, in the order of [`Signal::ALL`].
    pub items: [u64; Signal::ALL.len()],
}

/// A number of records with their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredCounts {
    pub(super) records: RecordCounts,
    /// The size of the records in bytes, headers included.
    pub(super) bytes: u64,
}

impl RecordCounts {
    /// The size of the encoded counts in bytes.
    pub(super) const BYTES: usize = 8 * Self::FIELDS;
    /// The number of fields of the encoded counts.
    pub(super) const FIELDS: usize = 1 + Signal::ALL.len();

    /// Returns the counts of a record.
    pub(super) fn one(signal: Signal, items: u64) -> Self {
        let mut counts = Self {
            records: 1,
            ..Self::default()
        };
        counts.items[signal as usize] = items;
        counts
    }

    /// Returns the number of items of all signals.
    pub fn total_items(&self) -> u64 {
        self.items.iter().fold(0, |sum, items| sum.saturating_add(*items))
    }

    /// Returns the larger count of each field.
    pub(super) fn max(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    /// Returns the smaller count of each field.
    pub(super) fn min(self, other: Self) -> Self {
        self.zip(other, u64::min)
    }

    /// Returns the fields: the records, then the items by signal.
    pub(super) fn fields(self) -> [u64; Self::FIELDS] {
        let [traces, metrics, logs] = self.items;
        [self.records, traces, metrics, logs]
    }

    /// Returns the counts with these fields.
    pub(super) fn from_fields([records, items @ ..]: [u64; Self::FIELDS]) -> Self {
        Self { records, items }
    }

    pub(super) fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (encoded, field) in bytes.chunks_exact_mut(8).zip(self.fields()) {
            encoded.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    pub(super) fn parse(bytes: &[u8; Self::BYTES]) -> Self {
        let (fields, _) = bytes.as_chunks();
        Self::from_fields(std::array::from_fn(|at| u64::from_le_bytes(fields[at])))
    }

    fn zip(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        let (fields, others) = (self.fields(), other.fields());
        Self::from_fields(std::array::from_fn(|at| combine(fields[at], others[at])))
    }
}

/// Saturates: totals that a file claims may be any numbers.
impl Add for RecordCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }
}

/// Saturates: a hole has no items if the records after it repeat earlier ones.
impl Sub for RecordCounts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }
}

impl AddAssign for RecordCounts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for RecordCounts {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl AddAssign for StoredCounts {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

impl SubAssign for StoredCounts {
    fn sub_assign(&mut self, other: Self) {
        self.records -= other.records;
        self.bytes -= other.bytes;
    }
}
