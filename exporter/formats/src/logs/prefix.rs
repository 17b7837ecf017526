//! Parses what loggers and launchers put before the message of a line: times, levels, places in the source, and tags of processes, in
//! any order and in any brackets: `2026-01-02 10:00:00,123 INFO [rank 3] `, `[INFO 2026-01-02 10:00:00] `, `ts=2026-01-02T10:00:00Z level=info `.

use pulsetrain_otlp::{UnixNanos, write::Severity};
use pulsetrain_record::{LoggedTime, Rank};

use super::{
    tag::{Speaker, Tag, number},
    timestamp::{DateOrder, Timestamp},
};

/// The beginning of a line before its message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix<'a> {
    /// The first time.
    pub(super) time: Option<LoggedTime>,
    /// The tag that names the process best: a rank rather than a name.
    pub(super) speaker: Option<Speaker<'a>>,
    /// The tag of the host or container, if another one names the process.
    pub(super) outer: Option<Speaker<'a>>,
    /// The level, also of a prefix of length 0.
    pub(super) level: Option<Severity>,
    /// The length in bytes; 0 without a time and a process, and if the time is the first cell of a table.
    pub(super) len: usize,
    /// The separator from the message.
    pub(super) gap: Gap,
}

/// The text between a prefix and the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Gap {
    /// One space. More of them are the indentation of the message.
    #[default]
    Space,
    /// Any spaces: loggers align the message after a level or a place.
    Aligned,
    /// Nothing.
    Nothing,
}

impl Gap {
    /// Returns the message after a prefix.
    pub(super) fn skip(self, text: &str) -> &str {
        if self == Self::Nothing {
            return text;
        }
        let text = text.trim_start_matches(['|', ':', ';']);
        let delimited = text.trim_start_matches([' ', '\t', '|', ':', ';']);
        let is_delimited = text[..text.len() - delimited.len()].contains(['|', ':', ';']);
        match self == Self::Aligned || is_delimited {
            true => delimited,
            false => text.strip_prefix([' ', '\t']).unwrap_or(text),
        }
    }
}

/// The levels of loggers.
const LEVELS: [&str; 11] = [
    "DEBUG",
    "INFO",
    "WARNING",
    "WARN",
    "ERROR",
    "CRITICAL",
    "FATAL",
    "TRACE",
    "NOTICE",
    "SUCCESS",
    "EXCEPTION",
];

/// The keys of a time in lines of `key=value`.
const TIME_KEYS: [&str; 6] = ["ts=", "time=", "timestamp=", "t=", "asctime=", "date="];

/// The keys of a level in lines of `key=value`.
const LEVEL_KEYS: [&str; 4] = ["level=", "lvl=", "severity=", "levelname="];

/// The endings of source files.
pub(super) const SOURCES: [&str; 9] = [".py", ".rs", ".cc", ".cpp", ".cu", ".go", ".h", ".jl", ".java"];

/// The most elements of a prefix, and the longest one in bytes.
const MAX_ELEMENTS: usize = 10;
const MAX_BRACKET: usize = 160;

/// An element of a prefix.
#[derive(Clone, Copy)]
enum Element<'a> {
    Time(LoggedTime),
    Tag(Speaker<'a>),
    Level(Option<Severity>),
    /// A place in the source, or the name of a logger.
    Other,
}

impl<'a> Prefix<'a> {
    /// Parses the beginning of a line.
    pub(super) fn parse(line: &'a str, near_unix_nanos: UnixNanos, order: &DateOrder) -> Self {
        let mut parser = Parser {
            near_unix_nanos,
            order,
            prefix: Self::default(),
            is_after_place: false,
        };
        let len = parser.elements(line, false);
        let Self { time, speaker, .. } = parser.prefix;
        let is_cell = line[len..].starts_with([',', '\t']);
        match (time.is_some() || speaker.is_some()) && !is_cell {
            true => parser.prefix.len = len,
            false => parser.prefix.gap = Gap::Space,
        }
        parser.prefix
    }
}

struct Parser<'p, 'a> {
    near_unix_nanos: UnixNanos,
    order: &'p DateOrder,
    prefix: Prefix<'a>,
    /// Whether the last element is a place in the source.
    is_after_place: bool,
}

impl<'a> Parser<'_, 'a> {
    /// Parses elements and returns their length.
    fn elements(&mut self, text: &'a str, is_in_bracket: bool) -> usize {
        let mut end = 0;
        for number in 0..MAX_ELEMENTS {
            let start = end + margin(&text[end..], number > 0);
            let Some(len) = self.element(&text[start..], is_in_bracket) else {
                break;
            };
            end = start + len;
        }
        end
    }

    /// Parses one element and returns its length.
    fn element(&mut self, text: &'a str, is_in_bracket: bool) -> Option<usize> {
        let first = *text.as_bytes().first()?;
        if std::mem::take(&mut self.is_after_place)
            && let Some((rank, len)) = rank_of_size(text)
        {
            self.add(Element::Tag(Speaker::Ranked(Rank::OfJob(rank))));
            return Some(len);
        }
        if let Some(tag) = Tag::parse(text) {
            self.add(Element::Tag(tag.speaker));
            if tag.is_last {
                self.prefix.gap = Gap::Nothing;
            }
            return Some(tag.len);
        }
        if matches!(first, b'[' | b'(' | b'<') && !is_in_bracket {
            return self.bracket(text);
        }
        if let Some(stamp) = Timestamp::parse(text, self.near_unix_nanos, self.order)
            && (!stamp.can_be_progress || is_in_bracket || is_of_logger(&text[stamp.len..]))
        {
            self.add(Element::Time(stamp.time));
            self.prefix.level = self.prefix.level.or(glog_severity(&text[..stamp.len]));
            return Some(stamp.len + absl_len(&text[..stamp.len], &text[stamp.len..]));
        }
        if let Some((time, len)) = self.keyed_time(text) {
            self.add(Element::Time(time));
            return Some(len);
        }
        let place = place_len(text);
        self.is_after_place = place.is_some();
        if place.is_none()
            && let Some(len) = level_len(text, is_in_bracket)
        {
            self.add(Element::Level(severity(&text[..len])));
            return Some(len);
        }
        let len = place.or_else(|| logger_len(text))?;
        self.add(Element::Other);
        Some(len)
    }

    /// Parses a bracket all of whose content is elements.
    fn bracket(&mut self, text: &'a str) -> Option<usize> {
        let close = match text.as_bytes()[0] {
            b'[' => b']',
            b'(' => b')',
            _ => b'>',
        };
        let end = memchr::memchr(close, text.as_bytes()).filter(|end| *end <= MAX_BRACKET)?;
        let inside = &text[1..end];
        let before = self.prefix;
        let len = self.elements(inside, true);
        // After a time, the names of loggers have any form.
        let has_time = before.time.is_none() && self.prefix.time.is_some();
        let is_other = |byte: u8| matches!(byte, b' ' | b',') || has_time && !byte.is_ascii_digit();
        let is_all = len > 0 && inside[len..].bytes().all(is_other);
        if !is_all {
            self.prefix = before;
            return None;
        }
        self.is_after_place = inside.contains(".py:");
        Some(end + 1)
    }

    /// Parses `ts=2026-01-02T10:00:00Z` and `time="2026-01-02T10:00:00Z"`.
    fn keyed_time(&self, text: &str) -> Option<(LoggedTime, usize)> {
        let rest = TIME_KEYS.iter().find_map(|key| text.strip_prefix(key))?;
        let quoted = rest.strip_prefix('"');
        let stamp = Timestamp::parse(quoted.unwrap_or(rest), self.near_unix_nanos, self.order)?;
        let start = text.len() - quoted.unwrap_or(rest).len();
        let end = start + stamp.len;
        let is_ended = quoted.is_none() || text[end..].starts_with('"');
        is_ended.then_some((stamp.time, end + usize::from(quoted.is_some())))
    }

    fn add(&mut self, element: Element<'a>) {
        let prefix = &mut self.prefix;
        prefix.gap = match element {
            Element::Level(_) | Element::Other => Gap::Aligned,
            Element::Time(_) | Element::Tag(_) => Gap::Space,
        };
        match element {
            Element::Time(time) => {
                prefix.time.get_or_insert(time);
            }
            Element::Tag(new) => match (prefix.speaker, new) {
                (Some(old @ Speaker::Ranked(_)), Speaker::Numbered(..) | Speaker::Named(..)) => {
                    prefix.outer = Some(new);
                    prefix.speaker = Some(old);
                }
                (old, new) => {
                    prefix.outer = old;
                    prefix.speaker = Some(new);
                }
            },
            Element::Level(level) => prefix.level = prefix.level.or(level),
            Element::Other => {}
        }
    }
}

/// Returns the length of the delimiters before an element.
fn margin(text: &str, is_after_element: bool) -> usize {
    let is_margin = |letter: char| {
        matches!(letter, ' ' | '\t') || is_after_element && matches!(letter, '|' | ':' | ',' | '-' | ';')
    };
    let rest = text.trim_start_matches(is_margin);
    // The sign of a number is not a delimiter.
    let is_sign = rest.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let margin = &text[..text.len() - rest.len()];
    margin.len() - usize::from(is_sign && margin.ends_with('-'))
}

/// Parses `(0/8) `, the rank and the number of ranks after the place in the source, as icefall prints it.
fn rank_of_size(text: &str) -> Option<(i64, usize)> {
    let (inside, rest) = text.strip_prefix('(')?.split_once(") ")?;
    let (rank, size) = inside.split_once('/')?;
    let rank = number(rank).filter(|rank| number(size).is_some_and(|size| *rank < size))?;
    Some((rank, text.len() - rest.len() - 1))
}

/// Returns whether a level or the name of a logger follows a time.
fn is_of_logger(rest: &str) -> bool {
    let rest = &rest[margin(rest, true)..];
    level_len(rest, false).or_else(|| logger_len(rest)).is_some()
}

/// Returns the length of the thread and the place after a time of absl: ` 1404134 train.py:99]`. CLU has the step in brackets after
/// the place, without which it would be a list.
fn absl_len(stamp: &str, rest: &str) -> usize {
    let is_absl = stamp.starts_with(['I', 'W', 'E', 'F', 'D', 'V']) && stamp.as_bytes()[1].is_ascii_digit();
    match rest.split_once(']') {
        Some((place, message)) if is_absl && place.contains(':') && place.len() <= MAX_BRACKET => {
            let step = message
                .trim_start()
                .strip_prefix('[')
                .and_then(|inside| inside.split_once(']'));
            match step.is_some_and(|(step, _)| number(step).is_some()) {
                true => 0,
                false => place.len() + 1,
            }
        }
        _ => 0,
    }
}

/// Returns whether a word is the level of a logger.
pub(super) fn is_level(word: &str) -> bool {
    LEVELS.contains(&word)
}

/// Returns the severity of a level: `WARNING`, `level=error`, `E`.
pub(super) fn severity(level: &str) -> Option<Severity> {
    let name = level.rsplit('=').next()?.to_ascii_uppercase();
    Some(match name.as_str() {
        "DEBUG" | "TRACE" | "D" => Severity::Debug,
        "INFO" | "NOTICE" | "SUCCESS" | "I" => Severity::Info,
        "WARNING" | "WARN" | "W" => Severity::Warn,
        "ERROR" | "CRITICAL" | "FATAL" | "EXCEPTION" | "E" | "F" => Severity::Error,
        _ => return None,
    })
}

/// Returns the severity in the first letter of a time of glog: `W0102 10:00:00`.
fn glog_severity(stamp: &str) -> Option<Severity> {
    let letter = stamp.get(..1)?;
    let is_glog = stamp.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    severity(letter).filter(|_| is_glog)
}

/// Returns the length of a level: `INFO`, `warning`, `level=info`.
fn level_len(text: &str, is_in_bracket: bool) -> Option<usize> {
    let key = LEVEL_KEYS
        .iter()
        .find(|key| text.starts_with(**key))
        .map_or(0, |key| key.len());
    let rest = &text[key..];
    let len = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    let level = &rest[..len];
    let is_level = LEVELS.iter().any(|name| name.eq_ignore_ascii_case(level))
        || is_in_bracket && matches!(level, "I" | "W" | "E" | "D");
    let is_cased =
        key > 0 || level.bytes().all(|byte| byte.is_ascii_uppercase()) || !rest[len..].starts_with(' ');
    let ends = rest[len..]
        .bytes()
        .next()
        .is_none_or(|next| !next.is_ascii_alphanumeric() && next != b'_' && next != b'=');
    (is_level && is_cased && ends).then_some(key + len)
}

/// Returns the length of a place in the source: `train.py:88`, `log_hooks.py: 277:`, `train.py (412)`, `train:main:42`.
fn place_len(text: &str) -> Option<usize> {
    let is_of_path =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-' | b'<' | b'>');
    let len = text.bytes().take(MAX_BRACKET).take_while(is_of_path).count();
    let (path, rest) = text.split_at(len);
    let number_len = |rest: &str| {
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let ends = rest[len..]
            .bytes()
            .next()
            .is_none_or(|next| !next.is_ascii_alphanumeric() && next != b'.');
        (len > 0 && ends).then_some(len)
    };
    if SOURCES.iter().any(|ending| path.ends_with(ending)) {
        let line = rest
            .strip_prefix(':')
            .map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
        if let Some(line) = line {
            return Some(text.len() - line.len() + number_len(line)?);
        }
        let inside = rest.strip_prefix(" (").or_else(|| rest.strip_prefix('('))?;
        let number = number_len(inside)?;
        return inside[number..]
            .starts_with(')')
            .then(|| text.len() - inside.len() + number + 1);
    }
    // `train:main:42` of loguru, with a message after ` - `.
    let function = rest.strip_prefix(':')?;
    let function_len = function.bytes().take_while(is_of_path).count();
    let line = function[function_len..].strip_prefix(':')?;
    let number = number_len(line)?;
    let is_place = function_len > 0 && !path.is_empty() && line[number..].starts_with(" - ");
    is_place.then(|| text.len() - line.len() + number)
}

/// Returns the length of the name of a logger before a level: `root - INFO`, `train.loop: INFO`.
fn logger_len(text: &str) -> Option<usize> {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let len = text.bytes().take(MAX_BRACKET).take_while(is_of_name).count();
    let rest = &text[len..];
    let margin = margin(rest, true);
    let is_delimited = margin > 1 && rest[..margin].contains(['-', '|', ':']);
    (len > 0 && is_delimited && level_len(&rest[margin..], false).is_some()).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2025-12-13 14:02:11, as if it were UTC.
    const EXPECTED: u64 = 1_765_634_531_000_000_000;

    fn parse(line: &str) -> Prefix<'_> {
        Prefix::parse(line, UnixNanos(EXPECTED), &DateOrder::default())
    }

    #[test]
    fn times_levels_and_places_are_removed_in_any_order() {
        for prefix in [
            "2025-12-13 14:02:11 ",
            "2025-12-13 14:02:11: ",
            "2025-12-13 14:02:11|",
            "2025-12-13 14:02:11 | INFO     | train:main:42 - ",
            "2025-12-13 14:02:11 - root - INFO - ",
            "2025-12-13 14:02:11 INFO train.loop: INFO: ",
            "[2025-12-13 14:02:11] ",
            "[12/13 14:02:11] ",
            "12/13 14:02:11 - train - INFO - ",
            "(2025-12-13 14:02:11) ",
            "<2025-12-13 14:02:11> ",
            "[2025-12-13 14:02:11 INFO t.py:8] ",
            "[2025-12-13 14:02:11][INFO] - ",
            "[2025-12-13 14:02:11] [pipeline.py (412)] [INFO] ",
            "[INFO 2025-12-13 14:02:11] ",
            "[INFO] 2025-12-13 14:02:11 ",
            "INFO 2025-12-13 14:02:11 ",
            "INFO:2025-12-13 14:02:11: ",
            "INFO 2025-12-13 14:02:11 ts/train.py:232 ",
            "INFO 2025-12-13 14:02:11 log_hooks.py: 277: ",
            "train.py:88 2025-12-13 14:02:11 ",
            "I1213 14:02:11 4411 t.py:8] ",
            "W20251213 14:02:11 4411 t.py:8] ",
        ] {
            for message in [
                "step 10 loss 2.5",
                "[10/100] loss 2.5",
                "epoch: 3",
                "loss=2.5",
                "-0.5 loss",
            ] {
                let line = [prefix, message].concat();
                let found = parse(&line);
                assert_eq!(found.time, Some(LoggedTime::Local(EXPECTED)), "{line}");
                assert_eq!(
                    line[found.len..].trim_start_matches([' ', '|', ':', '-']),
                    message.trim_start_matches('-'),
                    "{line}"
                );
            }
        }
        for prefix in [
            "ts=2025-12-13T14:02:11Z ",
            "time=\"2025-12-13T14:02:11Z\" level=info ",
            "time=2025-12-13T14:02:11Z level=info ",
        ] {
            let line = [prefix, "step=10 loss=2.5"].concat();
            let found = parse(&line);
            assert_eq!(found.time, Some(LoggedTime::Utc(UnixNanos(EXPECTED))), "{line}");
            assert_eq!(line[found.len..].trim_start(), "step=10 loss=2.5", "{line}");
        }
    }

    #[test]
    fn the_process_is_found_among_times_and_levels() {
        for (line, rank) in [
            ("2025-12-13 14:02:11 [rank3] step 10", 3),
            ("[2025-12-13 14:02:11] [rank 3] step 10", 3),
            ("2025-12-13 14:02:11,123 - INFO - [Rank 3] step 10", 3),
            ("[rank: 3] 2025-12-13 14:02:11 INFO step 10", 3),
            ("INFO 2025-12-13 14:02:11 log.py: 277: Rank: 3; step 10", 3),
        ] {
            let found = parse(line);
            assert_eq!(found.speaker, Some(Speaker::Ranked(Rank::OfJob(rank))), "{line}");
            assert!(found.time.is_some(), "{line}");
            assert_eq!(line[found.len..].trim_start(), "step 10", "{line}");
        }
        let found = parse("node-1 | [rank3]: step 10");
        assert_eq!(found.speaker, Some(Speaker::Ranked(Rank::OfHost(3))));
        assert_eq!(found.outer, Some(Speaker::Numbered("node-1", 1)));
    }

    #[test]
    fn lines_without_time_and_process_have_no_prefix() {
        for line in [
            "",
            "INFO:voice:[50, 0.0001]",
            "INFO step 10",
            "[INFO] step 10 loss 2.5",
            "[10/100] loss 2.5",
            "(loss 2.5)",
            "train.py:88 step 10",
            "loss: 2.5",
            "info: 3",
            "Epoch 1: 2025-12-13 14:02:11",
            "10/12 00:31:05 loss 2.5 [epoch 3]",
            "10/12 00:31:05 - loss: 2.5",
        ] {
            let prefix = Prefix {
                level: None,
                ..parse(line)
            };
            assert_eq!(prefix, Prefix::default(), "{line}");
        }
    }
}
