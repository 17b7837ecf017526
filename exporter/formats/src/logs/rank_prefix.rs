//! Strips the prefix that launchers put before each line of a worker: `[rank0]:`, `[default0]:` of torchrun, `[Rank 0]`, `0:`
//! of `srun --label`, `[1,0]<stdout>:` of `mpirun --tag-output`, `(TrainActor pid=7, ip=10.0.0.1)` of Ray.
//!
//! The number in a prefix of torchrun is the worker's local rank on its host.

use std::collections::BTreeSet;

use super::{
    clean::clean,
    tag::{self, Speaker, Tag},
};
use pulsetrain_record::Rank;

/// A line of a worker without the prefix of its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RankedLine<'a> {
    /// The worker's rank, if the line has it.
    pub(super) rank: Option<Rank>,
    /// The text that the worker wrote.
    pub(super) text: &'a str,
}

impl<'a> RankedLine<'a> {
    /// Splits a line into rank and text. A line without a prefix is returned as it is.
    #[inline]
    pub(super) fn parse(line: &'a str) -> Self {
        let prefixed = match line.as_bytes().first() {
            Some(b'[') => in_brackets(line),
            Some(b'(') if line.contains(" pid=") => tagged(line),
            Some(b' ' | b'0'..=b'9') => by_srun(line),
            _ => None,
        };
        prefixed.unwrap_or(Self {
            rank: None,
            text: line,
        })
    }
}

/// The numbers before the first lines of a log, which are ranks, as of `srun --label`, or steps: `100: loss 2.5`, `[100] loss=2.5`.
///
/// Ranks repeat, and few are missing. Steps have an interval, or increase with each line.
#[derive(Debug, Default)]
pub(super) struct LineNumbers {
    before_colon: Numbers,
    in_brackets: Numbers,
    scanned: usize,
}

/// The numbers of one form.
#[derive(Debug, Default)]
struct Numbers {
    seen: BTreeSet<usize>,
    lines: usize,
    has_decreased: bool,
}

impl LineNumbers {
    /// The number of bytes at the beginning of a log that are scanned.
    const MAX_SCANNED: usize = 64 << 10;

    /// Scans the beginning of a log.
    pub(super) fn new(log: &[u8]) -> Self {
        let mut numbers = Self::default();
        numbers.record(log);
        numbers
    }

    /// Adds the next bytes of a log, up to their last line end.
    pub(super) fn record(&mut self, bytes: &[u8]) {
        let limit = bytes.len().min(Self::MAX_SCANNED.saturating_sub(self.scanned));
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let end = bytes[..limit].iter().rposition(is_end).map_or(0, |at| at + 1);
        self.scanned += end;
        for line in bytes[..end].split(is_end) {
            if let Some(number) = leading_number(line) {
                self.before_colon.add(number);
            } else if let Some((number, _)) = bracketed_number(line) {
                self.in_brackets.add(number);
            }
        }
    }

    /// Splits a line into rank and text.
    #[inline]
    pub(super) fn split<'a>(&self, line: &'a str) -> RankedLine<'a> {
        let first = line.as_bytes().first();
        if matches!(first, Some(b' ' | b'0'..=b'9')) && self.before_colon.are_steps() {
            return RankedLine {
                rank: None,
                text: line,
            };
        }
        if matches!(first, Some(b'[' | b'<'))
            && let Some((number, len)) = bracketed_number(line.as_bytes())
            && self.in_brackets.are_ranks()
        {
            return RankedLine {
                rank: i64::try_from(number).ok().map(Rank::OfJob),
                text: without_colon(&line[len..]),
            };
        }
        RankedLine::parse(line)
    }
}

impl Numbers {
    /// The fewest lines of a rank, on average, in a log that lacks most ranks.
    const LINES_OF_RANK: usize = 3;
    /// The interval from which numbers are steps.
    const INTERVAL: usize = 4;
    /// The fewest increasing numbers without an interval that are steps.
    const INCREASING: usize = 16;

    fn add(&mut self, number: usize) {
        self.has_decreased |= self.seen.last().is_some_and(|last| number <= *last);
        self.seen.insert(number);
        self.lines += 1;
    }

    fn has_interval(&self) -> bool {
        let last = self.seen.last();
        last.is_some_and(|last| *last >= Self::INTERVAL * self.seen.len())
    }

    fn are_steps(&self) -> bool {
        let count = self.seen.len();
        self.has_interval() && self.lines < Self::LINES_OF_RANK * count
            || !self.has_decreased && count >= Self::INCREASING
    }

    /// Returns whether the numbers are ranks for certain: several of them repeat, from 0 on.
    fn are_ranks(&self) -> bool {
        let is_plural = self.seen.len() > 1 && self.seen.first() == Some(&0);
        is_plural && self.has_decreased && !self.has_interval() && self.lines >= 2 * self.seen.len()
    }
}

/// Parses the number before a line, as in `0: `.
fn leading_number(line: &[u8]) -> Option<usize> {
    let line = line.trim_ascii_start();
    let (number, len) = short_number(line)?;
    line[len..].starts_with(b": ").then_some(number)
}

/// Parses the number in brackets before a line, as in `[0] ` and `<0> `, with the length of the brackets.
fn bracketed_number(line: &[u8]) -> Option<(usize, usize)> {
    let (open, rest) = line.split_first()?;
    let close = match open {
        b'[' => b']',
        b'<' => b'>',
        _ => return None,
    };
    let (number, len) = short_number(rest)?;
    let is_closed = rest.get(len) == Some(&close) && matches!(rest.get(len + 1), Some(b' ' | b':'));
    is_closed.then_some((number, len + 2))
}

/// Parses a number of at most six digits, with its length.
fn short_number(text: &[u8]) -> Option<(usize, usize)> {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = (1..7).contains(&len).then(|| &text[..len])?;
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, len))
}

/// Calls `take` with each line of a log as its worker printed it: without control sequences and prefixes of launchers.
pub(super) fn each_printed_line(log: &[u8], mut take: impl FnMut(&str)) {
    let numbers = LineNumbers::new(log);
    for line in log.split(|byte| matches!(byte, b'\n' | b'\r')) {
        take(numbers.split(&clean(line)).text);
    }
}

/// Returns lines without the prefixes of launchers. Without a prefix, they stay as they are: with control sequences, and text that is
/// not UTF-8.
pub(super) fn without_prefixes(lines: &[u8]) -> Vec<u8> {
    let each = lines.split_inclusive(|byte| matches!(byte, b'\n' | b'\r'));
    each.flat_map(|line| {
        let printed = clean(line);
        let text = RankedLine::parse(&printed).text;
        match text.len() == printed.len() {
            true => line.to_vec(),
            false => text.as_bytes().to_vec(),
        }
    })
    .collect()
}

/// Parses `[rank0]:`, `[default0]:` and `[Rank 0]`. The prefix of KempnerForge, `[rank 0]`, is part of its lines.
fn in_brackets(line: &str) -> Option<RankedLine<'_>> {
    let (inside, rest) = line[1..].split_once(']')?;
    if rest.starts_with('<') {
        return tagged(line);
    }
    if let Some(number) = inside
        .strip_prefix("Rank ")
        .or_else(|| inside.strip_prefix("rank "))
    {
        let is_own = inside.starts_with('r') && !rest.starts_with(':');
        return Some(RankedLine {
            rank: Some(Rank::OfJob(tag::number(number)?)),
            text: if is_own { line } else { without_colon(rest) },
        });
    }
    let rest = rest.strip_prefix(':')?;
    let digits = inside.trim_start_matches(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    (digits.len() < inside.len()).then_some(())?;
    Some(RankedLine {
        rank: Some(Rank::OfHost(tag::number(digits)?)),
        text: rest.strip_prefix(' ').unwrap_or(rest),
    })
}

/// Parses the tags of `mpirun` and Ray.
fn tagged(line: &str) -> Option<RankedLine<'_>> {
    let tag = Tag::parse(line)?;
    let rank = match tag.speaker {
        Speaker::Ranked(rank) => Some(rank),
        Speaker::Named(..) => None,
        Speaker::Numbered(..) => return None,
    };
    let text = &line[tag.len..];
    Some(RankedLine {
        rank,
        text: without_repetitions(text.strip_prefix(' ').unwrap_or(text)),
    })
}

/// Removes the suffix that Ray appends to a line that several processes printed.
pub(super) fn without_repetitions(text: &str) -> &str {
    match text.rsplit_once(" [repeated ") {
        Some((text, times)) if times.contains("x across cluster]") => text,
        _ => text,
    }
}

/// Parses `0: `, padded to the width of the largest rank.
fn by_srun(line: &str) -> Option<RankedLine<'_>> {
    let (task, text) = line.split_once(": ")?;
    Some(RankedLine {
        rank: Some(Rank::OfJob(tag::number(task.trim_start_matches(' '))?)),
        text,
    })
}

fn without_colon(rest: &str) -> &str {
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    rest.strip_prefix(' ').unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulsetrain_record::Rank::{OfHost, OfJob};

    #[test]
    fn the_prefix_of_every_launcher_is_stripped() {
        for (line, rank) in [
            ("[rank0]:loss", Some(OfHost(0))),
            ("[rank3]: loss", Some(OfHost(3))),
            ("[default12]:loss", Some(OfHost(12))),
            ("[Rank 5] loss", Some(OfJob(5))),
            ("[Rank 5]: loss", Some(OfJob(5))),
            ("0: loss", Some(OfJob(0))),
            (" 7: loss", Some(OfJob(7))),
            ("07: loss", Some(OfJob(7))),
            ("[1,0]<stdout>:loss", Some(OfJob(0))),
            ("[1,12]<stderr>: loss", Some(OfJob(12))),
            ("[prterun-host-123@1,3]<stdout>: loss", Some(OfJob(3))),
            ("(TrainActor pid=4711, ip=10.0.0.1) loss", None),
            ("(TrainActor pid=4711) loss", None),
            ("(TrainActor(rank=2) pid=4711, ip=10.0.0.1) loss", Some(OfJob(2))),
            ("(TrainActor pid=4711) loss [repeated 3x across cluster]", None),
        ] {
            assert_eq!(
                RankedLine::parse(line),
                RankedLine { rank, text: "loss" },
                "{line}"
            );
        }
    }

    #[test]
    fn numbers_with_an_interval_are_steps_and_not_ranks() {
        let rank_of_last = |numbers: &[u32]| {
            let log: String = numbers.iter().map(|number| format!("{number}: loss\n")).collect();
            let last = log.lines().next_back().unwrap_or_default();
            LineNumbers::new(log.as_bytes()).split(last).rank
        };
        for steps in [
            &[0, 100, 200][..],
            &[0, 10][..],
            &[50, 100, 150, 50, 100][..],
            &(1..20).collect::<Vec<_>>()[..],
        ] {
            assert_eq!(rank_of_last(steps), None, "{steps:?}");
        }
        for ranks in [
            &[0, 3][..],
            &[3, 1, 2, 0][..],
            &[0, 1, 2, 3][..],
            &[0, 63, 0, 63, 0, 63][..],
            &(0..20).chain([7]).collect::<Vec<_>>()[..],
        ] {
            assert!(rank_of_last(ranks).is_some(), "{ranks:?}");
        }
    }

    #[test]
    fn numbers_in_brackets_are_ranks_only_if_they_repeat_from_0_on() {
        let rank_of_last = |numbers: &[u32]| {
            let log: String = numbers
                .iter()
                .map(|number| format!("[{number}] loss\n"))
                .collect();
            let last = log.lines().next_back().unwrap_or_default();
            LineNumbers::new(log.as_bytes()).split(last).rank
        };
        assert_eq!(rank_of_last(&[0, 2, 1, 3, 0, 1, 2, 3]), Some(OfJob(3)));
        for steps in [
            &[0, 1, 2, 3][..],
            &[100, 200, 100, 200],
            &[0, 100, 0, 100],
            &[1, 2, 1, 2],
        ] {
            assert_eq!(rank_of_last(steps), None, "{steps:?}");
        }
    }

    #[test]
    fn trainer_prefix_yields_the_rank_and_is_kept_in_the_text() {
        let line = "[rank 2] INFO     [step 10] loss=6.8";
        assert_eq!(
            RankedLine::parse(line),
            RankedLine {
                rank: Some(OfJob(2)),
                text: line
            }
        );
    }

    #[test]
    fn text_resembling_a_rank_prefix_is_not_stripped() {
        for line in [
            "[titan] 2026-11-21 00:20:59,001 - root - INFO - Starting job: demo",
            "[2026-11-21 00:21:27,088] loop.py:340 INFO TIMING step=2: step=0.081s",
            " [2026-01-01 00:00:00.000000] iteration       10/     100 | lm loss: 1",
            "[G] step     5 [gpu  0] | power  620 W",
            "[rank0] no colon",
            "[0]: no word",
            "[1,0]<loss>: 2.5",
            "[1]<stdout>:x",
            "(loss: 2.5) ",
            "(pid=) x",
            "12:30:00 x: y",
            "1234567: x",
            " split as 87.50% learnable weight flops: x",
            "0:x",
            "[",
            "(",
            "",
        ] {
            assert_eq!(
                RankedLine::parse(line),
                RankedLine {
                    rank: None,
                    text: line
                },
                "{line}"
            );
        }
    }
}
