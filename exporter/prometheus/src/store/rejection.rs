//! Reasons for rejecting a point, and their counts.

use std::fmt;

/// The sizes of the store and the number of rejected points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrometheusCounts {
    /// The current number of series.
    pub series: usize,
    /// The maximum number of series.
    pub limit: usize,
    /// The memory use of series, families and targets in bytes.
    pub bytes: usize,
    /// The maximum memory use in bytes.
    pub max_bytes: usize,
    /// The number of series that ended so far because they had no point within `series_stale_after`.
    pub expired: u64,
    /// The number of series evicted so far.
    pub evicted: u64,
    /// The number of series that ended so far with their resource, which was stale for `stale_after` or had a
    /// later attempt.
    pub ended_with_resource: u64,
    /// The number of points so far with a time in the future, which was replaced by their arrival time.
    pub ahead: u64,
    /// The number of points rejected so far by reason, in the order of [`Rejection::ALL`], zeros included.
    pub rejected: Vec<(Rejection, u64)>,
}

/// The reason for rejecting a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rejection {
    /// Its series exceeds `series_limit`.
    SeriesLimit,
    /// Another metric has its Prometheus name with another type.
    TypeConflict,
    /// Another metric has its Prometheus name, and a series with the same labels.
    NameCollision,
    /// Its name has no valid character.
    BadName,
    /// Its temporality is delta or unknown, and its kind cannot be summed.
    Temporality,
    /// It has no value, inconsistent buckets, or a count that is negative or NaN.
    Malformed,
    /// Its name or its labels are longer than 16 KiB.
    LabelsTooLong,
    /// One of its labels has a name that the page writes itself.
    ReservedLabel,
    /// It exceeds `max_bytes`.
    MemoryLimit,
}

impl Rejection {
    /// All reasons, in the order of their declaration.
    pub const ALL: [Self; 9] = [
        Self::SeriesLimit,
        Self::TypeConflict,
        Self::NameCollision,
        Self::BadName,
        Self::Temporality,
        Self::Malformed,
        Self::LabelsTooLong,
        Self::ReservedLabel,
        Self::MemoryLimit,
    ];

    /// Returns the label value of the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SeriesLimit => "series_limit",
            Self::TypeConflict => "type_conflict",
            Self::NameCollision => "name_collision",
            Self::BadName => "bad_name",
            Self::Temporality => "temporality",
            Self::Malformed => "malformed",
            Self::LabelsTooLong => "labels_too_long",
            Self::ReservedLabel => "reserved_label",
            Self::MemoryLimit => "memory_limit",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SeriesLimit => "over series_limit; raise it, or send fewer attribute values",
            Self::TypeConflict => "another metric has the name in Prometheus with another type; rename one",
            Self::NameCollision => "another metric has the name and the labels in Prometheus; rename one",
            Self::BadName => "no legal character in the name",
            Self::Temporality => {
                "delta or unknown temporality of a kind that cannot be summed; send cumulative points"
            }
            Self::Malformed => "no value, buckets that do not fit together, or a count below zero or NaN",
            Self::LabelsTooLong => "a name, or labels, longer than 16 KiB",
            Self::MemoryLimit => "over max_bytes; raise it, or send fewer and shorter names and attributes",
            Self::ReservedLabel => {
                "an attribute has the label __name__, le of a histogram or quantile of a summary; rename it"
            }
        })
    }
}
