//! Why a point is not kept, and how often that happened.

use std::fmt;

/// What the store holds and what it refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrometheusCounts {
    /// The series now.
    pub series: usize,
    /// The most series that are kept.
    pub limit: usize,
    /// The bytes that series, families and targets take.
    pub bytes: usize,
    /// The most bytes that they may take.
    pub max_bytes: usize,
    /// The series that ended since the start because nothing was sent for them within `series_stale_after`.
    pub expired: u64,
    /// The series that ended since the start to make room for others.
    pub evicted: u64,
    /// The series that ended since the start with their resource: it sent nothing within `stale_after`, or a later attempt began.
    pub ended_with_resource: u64,
    /// The points since the start whose time was too far in the future; they got the time of their arrival.
    pub ahead: u64,
    /// The points refused since the start, one entry a reason, in the order of [`Rejection::ALL`]; zeros included.
    pub rejected: Vec<(Rejection, u64)>,
}

/// Why a point cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rejection {
    /// Its series would be one more than `series_limit`.
    SeriesLimit,
    /// Another metric has its name in Prometheus with another type.
    TypeConflict,
    /// Another metric has its name in Prometheus, and a series with the same labels.
    NameCollision,
    /// Nothing legal is left of its name.
    BadName,
    /// It counts since the last point, or since nobody knows when, and its kind cannot be added up.
    Temporality,
    /// It has no value, buckets that make no sense, or counts a number below zero or NaN.
    Malformed,
    /// Its name or its labels are longer than 16 KiB.
    LabelsTooLong,
    /// One of its labels has a name that the page writes itself.
    ReservedLabel,
    /// There is no more memory for it within `max_bytes`.
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

    /// The reason as a value of a label.
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
                "delta or unknown temporality of a kind that cannot be added up; send cumulative points"
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
