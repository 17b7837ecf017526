//! The report of skipped input: everything that did not become telemetry is counted, with the reason.

use std::collections::BTreeMap;

/// The reason why something in the input did not become telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkipReason {
    /// The input ends inside a record: the file is still being written, or was truncated.
    IncompleteRecord,
    /// A record that is not valid in its format.
    MalformedRecord,
    /// A record that is longer than the limit.
    RecordTooLong,
    /// Bytes between records that are not part of any record.
    UnrecognisedBytes,
    /// A number that the trainer marked as not measured: with a marker such as `N/A`, or with `null` in JSON.
    NotMeasured,
    /// A number that is not valid for a sum or a histogram: not finite, or negative in a counter.
    NotSummable,
    /// A value under a name that the registry does not know, beyond the limit for such names.
    TooManyCustomNames,
    /// A value under a name beyond the limit for the names of one input.
    TooManyNames,
    /// A record of a rank beyond the limit for the ranks of one log: it counts as the run's own rank.
    TooManyRanks,
    /// A point of a series beyond the limit for the series of one metric.
    TooManySeries,
    /// A name that the registry does not know: its values are kept as `train.custom`; reported once per name.
    UnknownName,
    /// A point of a step that another point of the same series has, with another value: two processes, or two parts of a model, may
    /// write the same name. Both are recorded.
    RepeatedStep,
    /// Times of a clock without a relation to the wall clock: they count from 1970.
    NoWallClock,
    /// Input that a format ignores by a rule, with the name of the rule: no telemetry, or a duplicate.
    Ignored(&'static str),
}

impl SkipReason {
    /// Returns the reason as one word, for summaries and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IncompleteRecord => "incomplete_record",
            Self::MalformedRecord => "malformed_record",
            Self::RecordTooLong => "record_too_long",
            Self::UnrecognisedBytes => "unrecognised_bytes",
            Self::NotMeasured => "not_measured",
            Self::NotSummable => "not_summable",
            Self::TooManyCustomNames => "too_many_custom_names",
            Self::TooManyNames => "too_many_names",
            Self::TooManyRanks => "too_many_ranks",
            Self::TooManySeries => "too_many_series",
            Self::UnknownName => "unknown_name",
            Self::RepeatedStep => "repeated_step",
            Self::NoWallClock => "no_wall_clock",
            Self::Ignored(rule) => rule,
        }
    }

    /// Returns whether data was lost: `false` for values that were not measured, input ignored by a rule, and values that are
    /// recorded.
    pub fn is_loss(self) -> bool {
        !matches!(self, Self::NotMeasured | Self::Ignored(_)) && !self.is_recorded()
    }

    /// Returns whether the values are recorded nevertheless.
    pub fn is_recorded(self) -> bool {
        matches!(self, Self::UnknownName | Self::RepeatedStep)
    }
}

/// A position in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePosition {
    /// The first byte, counted from zero.
    pub offset: u64,
    /// The line, counted from one.
    pub line: u64,
}

impl SourcePosition {
    /// Returns the position after `bytes`, which begin here. Counting lines is linear in the number of bytes, so advance from record
    /// to record.
    #[must_use]
    pub fn advanced_by(self, bytes: &[u8]) -> Self {
        Self {
            offset: self.offset + bytes.len() as u64,
            line: self.line + memchr::memchr_iter(b'\n', bytes).count() as u64,
        }
    }
}

/// A skipped part of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The reason.
    pub reason: SkipReason,
    /// The position.
    pub position: SourcePosition,
    /// A description of the problem.
    pub message: String,
}

/// The counts of everything that was skipped, and the first problems of each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParseReport {
    counts: BTreeMap<SkipReason, u64>,
    /// The sum of the counts.
    total: u64,
    problems: Vec<Problem>,
}

/// The limit for reported problems per reason; further ones are only counted.
const REPORTED_PER_REASON: u64 = 5;

impl ParseReport {
    /// Counts a problem and keeps it if it is among the first of its reason.
    pub fn add(&mut self, reason: SkipReason, position: SourcePosition, message: impl FnOnce() -> String) {
        let count = self.counts.entry(reason).or_default();
        *count += 1;
        self.total += 1;
        if *count <= REPORTED_PER_REASON {
            self.problems.push(Problem {
                reason,
                position,
                message: message(),
            });
        }
    }

    /// Counts a skipped item without a report.
    pub fn count(&mut self, reason: SkipReason) {
        self.count_many(reason, 1);
    }

    /// Counts several skipped items without a report.
    pub fn count_many(&mut self, reason: SkipReason, count: u64) {
        if count > 0 {
            *self.counts.entry(reason).or_default() += count;
            self.total += count;
        }
    }

    /// Returns the number of skipped items of all reasons.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Iterates over the reasons and their counts.
    pub fn counts(&self) -> impl Iterator<Item = (SkipReason, u64)> + '_ {
        self.counts.iter().map(|(reason, count)| (*reason, *count))
    }

    /// Returns the first problems of each reason, in the order of the input.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns whether data was lost.
    pub fn has_losses(&self) -> bool {
        self.counts.keys().any(|reason| reason.is_loss())
    }

    /// Adds the counts and the problems of another input.
    pub fn merge(&mut self, other: Self) {
        for (reason, count) in other.counts {
            *self.counts.entry(reason).or_default() += count;
        }
        self.problems.extend(other.problems);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_counted_and_only_the_first_are_kept() {
        let mut skipped = ParseReport::default();
        for offset in 0..100 {
            let position = SourcePosition { offset, line: 1 };
            skipped.add(SkipReason::MalformedRecord, position, || {
                format!("record {offset}")
            });
        }
        assert_eq!(
            skipped.counts().collect::<Vec<_>>(),
            [(SkipReason::MalformedRecord, 100)]
        );
        assert_eq!(skipped.problems().len(), 5);
        assert!(skipped.has_losses());
    }

    #[test]
    fn unmeasured_values_do_not_count_as_losses() {
        let mut skipped = ParseReport::default();
        skipped.count(SkipReason::NotMeasured);
        assert!(!skipped.has_losses());
    }
}
