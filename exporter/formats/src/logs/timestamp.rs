//! Parses a time at the beginning of a text in the usual styles of loggers: ISO 8601 and its relatives, dates with slashes, dots or
//! names of months, ctime, syslog, absl, the common log format, and seconds, milliseconds, microseconds or nanoseconds since 1970.
//!
//! A date without a year is in the latest year in which it is not in the future. A date such as `03/04/2025` has two readings: a
//! log keeps the order of its first date, until another date shows that it is the other one ([`DateOrder`]).

mod date_order;

use jiff::civil;
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::LoggedTime;

pub(super) use date_order::DateOrder;

/// A time and the length of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timestamp {
    pub(super) time: LoggedTime,
    pub(super) len: usize,
    /// Whether it can be the progress of a bar with its time: `10/12 00:31:05`.
    pub(super) can_be_progress: bool,
}

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// The tolerance for times without a zone: a local time can be later than the same time in UTC.
const FUTURE: u64 = DAY;

/// Plausible seconds since 1970: from 2001 to 2100.
const EPOCHS: std::ops::Range<u64> = 1_000_000_000..4_102_444_800;

/// The names of months.
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The names of days.
const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// A date, whose year may be unknown.
#[derive(Clone, Copy)]
struct Date {
    year: Option<u64>,
    month: u64,
    day: u64,
    /// Whether it is written without separators, so that its time can be, too.
    is_compact: bool,
}

impl Timestamp {
    /// Parses the time at the beginning of a text. `near_unix_nanos` is the approximate time of the log, for dates that are not
    /// complete.
    pub(super) fn parse(text: &str, near_unix_nanos: UnixNanos, order: &DateOrder) -> Option<Self> {
        let mut cursor = Cursor {
            text,
            at: 0,
            can_be_progress: false,
        };
        let first = *text.as_bytes().first()?;
        let time = match first {
            b'0'..=b'9' => cursor.numeric(near_unix_nanos, order)?,
            b'A'..=b'Z' | b'a'..=b'z' => cursor.named(near_unix_nanos)?,
            _ => return None,
        };
        let ends = !cursor.peek().is_some_and(|next| next.is_ascii_alphanumeric());
        ends.then_some(Self {
            time,
            len: cursor.at,
            can_be_progress: cursor.can_be_progress,
        })
    }
}

/// A position in a text.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
    can_be_progress: bool,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn take(&mut self, expected: u8) -> Option<()> {
        (self.peek()? == expected).then(|| self.at += 1)
    }

    /// Returns the number of digits at the position.
    fn run(&self) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        rest.iter()
            .take(20)
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    }

    /// Parses a number of this many digits.
    fn digits(&mut self, len: usize) -> Option<u64> {
        let number = self.text.get(self.at..self.at + len)?.parse().ok()?;
        self.at += len;
        Some(number)
    }

    /// Parses a number of one or two digits.
    fn short(&mut self) -> Option<u64> {
        match self.run() {
            len @ 1..=2 => self.digits(len),
            _ => None,
        }
    }

    /// Parses a name of at least three letters: `Dec`, `December`. Returns its index.
    fn name(&mut self, names: &[&str]) -> Option<u64> {
        let rest = &self.text[self.at..];
        let len = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let word = &rest[..len];
        let is_name = |name: &&str| {
            len >= 3
                && name
                    .get(..len)
                    .is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        let index = names.iter().position(is_name)?;
        self.at += len;
        Some(index as u64)
    }

    /// Parses a time that begins with a digit.
    fn numeric(&mut self, near: UnixNanos, order: &DateOrder) -> Option<LoggedTime> {
        match self.run() {
            10 => self.since_1970(SECOND, 10),
            13 => self.since_1970(SECOND / 1_000, 13),
            16 => self.since_1970(SECOND / 1_000_000, 16),
            19 => self.since_1970(1, 19),
            8 => {
                let date = self.compact_date()?;
                self.rest(date, near)
            }
            14 => {
                let date = self.compact_date()?;
                let clock = self.compact_clock()?;
                date.at(clock, near).map(LoggedTime::Local)
            }
            4 => {
                let date = self.year_first()?;
                self.rest(date, near)
            }
            1 | 2 => self.day_or_month_first(near, order),
            _ => None,
        }
    }

    /// Parses seconds or parts of them since 1970, with or without decimal places.
    fn since_1970(&mut self, nanos: u64, len: usize) -> Option<LoggedTime> {
        let count = self.digits(len)?;
        if !EPOCHS.contains(&(count / (SECOND / nanos))) {
            return None;
        }
        let fraction = match nanos == SECOND && self.peek() == Some(b'.') {
            true => self.fraction(),
            false => 0,
        };
        // A longer number, or a word, is not a time.
        let ends = self.peek().is_none_or(|next| b" \t:|])}>-\"'".contains(&next));
        ends.then(|| LoggedTime::Utc(UnixNanos(count * nanos + fraction)))
    }

    fn compact_date(&mut self) -> Option<Date> {
        Some(Date {
            year: Some(self.digits(4)?),
            month: self.digits(2)?,
            day: self.digits(2)?,
            is_compact: true,
        })
    }

    /// Parses `2025-12-13`, also with slashes, dots, or `2025年12月13日`.
    fn year_first(&mut self) -> Option<Date> {
        let year = Some(self.digits(4)?);
        let rest = &self.text[self.at..];
        let separator = rest.chars().next()?;
        let (second, last) = match separator {
            '-' | '/' | '.' => (separator, ""),
            '年' => ('月', "日"),
            _ => return None,
        };
        self.at += separator.len_utf8();
        let month = match separator == '年' {
            true => self.short()?,
            false => self.digits(2)?,
        };
        self.at += self.text[self.at..]
            .starts_with(second)
            .then_some(second.len_utf8())?;
        let day = match separator == '年' {
            true => self.short()?,
            false => self.digits(2)?,
        };
        self.at += self.text[self.at..].starts_with(last).then_some(last.len())?;
        Some(Date {
            year,
            month,
            day,
            is_compact: false,
        })
    }

    /// Parses `13/12/2025`, `12/13/25`, `13.12.2025`, `12-13 14:02:11`, `13/Dec/2025:14:02:11`, `13 Dec 2025`.
    fn day_or_month_first(&mut self, near: UnixNanos, order: &DateOrder) -> Option<LoggedTime> {
        let has_two_digits = self.run() == 2;
        let first = self.short()?;
        let separator = self.peek()?;
        if !matches!(separator, b'/' | b'.' | b'-' | b' ') {
            return None;
        }
        self.at += 1;
        if let Some(month) = self.name(&MONTHS) {
            let date = self.year_after(first, month + 1)?;
            return self.rest(date, near);
        }
        if separator == b' ' || self.run() != 2 || !has_two_digits {
            return None;
        }
        let second = self.digits(2)?;
        let year = match self.peek() {
            Some(next) if next == separator => {
                self.at += 1;
                match self.run() {
                    4 => Some(self.digits(4)?),
                    2 if separator == b'/' => Some(2000 + self.digits(2)?),
                    _ => return None,
                }
            }
            Some(b' ') if matches!(separator, b'-' | b'/') => {
                self.can_be_progress = separator == b'/';
                None
            }
            _ => return None,
        };
        let date = |month, day| Date {
            year,
            month,
            day,
            is_compact: false,
        };
        let (month_first, day_first) = (date(first, second), date(second, first));
        if year.is_none() {
            return self.rest(month_first, near);
        }
        let start = self.at;
        let month_first = self.rest(month_first, near);
        let end = std::mem::replace(&mut self.at, start);
        let day_first = self.rest(day_first, near);
        self.at = self.at.max(end);
        order.choose(month_first, day_first, separator == b'/', near)
    }

    /// Parses the year after a day and the name of a month: `/2025`, ` 2025`, `-2025`.
    fn year_after(&mut self, day: u64, month: u64) -> Option<Date> {
        matches!(self.peek()?, b'/' | b'-' | b' ').then_some(())?;
        self.at += 1;
        (self.run() == 4).then_some(())?;
        Some(Date {
            year: Some(self.digits(4)?),
            month,
            day,
            is_compact: false,
        })
    }

    /// Parses a time that begins with a letter: the name of a day or a month, or a level of absl.
    fn named(&mut self, near: UnixNanos) -> Option<LoggedTime> {
        if let Some(time) = self.absl(near) {
            return Some(time);
        }
        self.at = 0;
        if self.name(&DAYS).is_some() {
            if self.peek() == Some(b',') {
                self.at += 1;
            }
            self.take(b' ')?;
        }
        if self.peek()?.is_ascii_digit() {
            let day = self.short()?;
            self.take(b' ')?;
            let month = self.name(&MONTHS)? + 1;
            let date = self.year_after(day, month)?;
            return self.rest(date, near);
        }
        let month = self.name(&MONTHS)? + 1;
        self.take(b' ')?;
        if self.peek() == Some(b' ') {
            self.at += 1;
        }
        let day = self.short()?;
        let mut date = Date {
            year: None,
            month,
            day,
            is_compact: false,
        };
        // `Dec 13, 2025 14:02:11` or `Dec 13 2025 14:02:11`.
        let start = self.at;
        if self.peek() == Some(b',') {
            self.at += 1;
        }
        if self.take(b' ').is_some() && self.run() == 4 {
            date.year = Some(self.digits(4)?);
            return self.rest(date, near);
        }
        self.at = start;
        self.take(b' ')?;
        let clock = self.clock()?;
        // ctime has the zone and the year after the clock.
        let start = self.at;
        let zone = self.zone_word();
        if self.take(b' ').is_some() && self.run() == 4 {
            date.year = Some(self.digits(4)?);
        } else {
            self.at = start;
        }
        let local = date.at(clock, near)?;
        Some(match zone {
            Some(0) => LoggedTime::Utc(UnixNanos(local)),
            _ => LoggedTime::Local(local),
        })
    }

    /// Parses `I1213 14:02:11.123456` and `W20251213 14:02:11.123456`.
    fn absl(&mut self, near: UnixNanos) -> Option<LoggedTime> {
        if !matches!(self.peek()?, b'I' | b'W' | b'E' | b'F' | b'D' | b'V') {
            return None;
        }
        self.at += 1;
        let date = match self.run() {
            4 => Date {
                year: None,
                month: self.digits(2)?,
                day: self.digits(2)?,
                is_compact: false,
            },
            8 => self.compact_date()?,
            _ => return None,
        };
        self.take(b' ')?;
        let clock = self.clock()?;
        date.at(clock, near).map(LoggedTime::Local)
    }

    /// Parses the separator, the clock and the zone after a date.
    fn rest(&mut self, date: Date, near: UnixNanos) -> Option<LoggedTime> {
        if !matches!(self.peek()?, b' ' | b'T' | b',' | b'-' | b'_' | b':') {
            return None;
        }
        self.at += 1;
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
        let clock = match date.is_compact && self.run() == 6 {
            true => self.compact_clock()?,
            false => self.clock()?,
        };
        let local = date.at(clock, near)?;
        Some(match self.zone() {
            Some(offset) => LoggedTime::Utc(UnixNanos(local.checked_add_signed(-offset)?)),
            None => LoggedTime::Local(local),
        })
    }

    fn compact_clock(&mut self) -> Option<u64> {
        let (hour, minute, second) = (self.digits(2)?, self.digits(2)?, self.digits(2)?);
        clock_nanos(hour, minute, second)
    }

    /// Parses `14:02`, `14:02:11`, `14:02:11,123`, `14-02-11` or `2:02:11 PM`.
    fn clock(&mut self) -> Option<u64> {
        let hour = self.short()?;
        let separator = self.peek().filter(|next| matches!(next, b':' | b'-'))?;
        self.at += 1;
        (self.run() == 2).then_some(())?;
        let minute = self.digits(2)?;
        let has_second = self.peek() == Some(separator) && {
            self.at += 1;
            let is_pair = self.run() == 2;
            self.at -= usize::from(!is_pair);
            is_pair
        };
        let second = match has_second {
            true => self.digits(2)?,
            false if separator == b'-' => return None,
            false => 0,
        };
        let is_fraction = has_second && self.is_fraction();
        let fraction = if is_fraction { self.fraction() } else { 0 };
        let half = &self.text[self.at..];
        let half = half.strip_prefix(' ').unwrap_or(half);
        let half_len = half.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let half = &half[..half_len];
        let hour = match (half, hour) {
            ("AM" | "am", 12) => 0,
            ("PM" | "pm", 1..=11) => hour + 12,
            _ => hour,
        };
        if matches!(half, "AM" | "PM" | "am" | "pm") {
            self.at += usize::from(self.peek() == Some(b' ')) + 2;
        }
        Some(clock_nanos(hour, minute, second)? + fraction)
    }

    /// Returns whether decimal places follow, and not the next cell of a table.
    fn is_fraction(&self) -> bool {
        let Some((mark, places)) = self.text.as_bytes()[self.at..].split_first() else {
            return false;
        };
        let len = places.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_cell = *mark == b',' && matches!(places.get(len), Some(b'.' | b','));
        matches!(mark, b'.' | b',') && len > 0 && !is_cell
    }

    /// Parses decimal places as nanoseconds.
    fn fraction(&mut self) -> u64 {
        self.at += 1;
        let places = &self.text.as_bytes()[self.at..];
        let len = places.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += len;
        let nine = places[..len].iter().chain(std::iter::repeat(&b'0')).take(9);
        nine.fold(0, |nanos, digit| nanos * 10 + u64::from(digit - b'0'))
    }

    /// Parses a zone after a clock, in nanoseconds east of UTC.
    fn zone(&mut self) -> Option<i64> {
        let start = self.at;
        if self.peek() == Some(b' ') {
            self.at += 1;
        }
        let found = match self.peek() {
            Some(b'Z') => {
                self.at += 1;
                let ends = !self.peek().is_some_and(|next| next.is_ascii_alphanumeric());
                ends.then_some(0)
            }
            Some(b'U' | b'G') => {
                self.at = start;
                self.zone_word().filter(|offset| *offset == 0)
            }
            Some(sign @ (b'+' | b'-')) => self.offset(sign),
            _ => None,
        };
        if found.is_none() {
            self.at = start;
        }
        found
    }

    /// Parses `+0100` or `+01:00`.
    fn offset(&mut self, sign: u8) -> Option<i64> {
        self.at += 1;
        let (hours, minutes) = match self.run() {
            4 => (self.digits(2)?, self.digits(2)?),
            2 if self.peek_at(2) == Some(b':') => {
                let hours = self.digits(2)?;
                self.at += 1;
                (self.run() == 2).then_some(())?;
                (hours, self.digits(2)?)
            }
            _ => return None,
        };
        let nanos = i64::try_from((hours * 60 + minutes) * 60 * SECOND).ok()?;
        Some(if sign == b'-' { -nanos } else { nanos })
    }

    /// Parses the name of a zone after a space: 0 for UTC. Other names have no single offset; the time is then local.
    fn zone_word(&mut self) -> Option<i64> {
        let rest = self.text[self.at..].strip_prefix(' ')?;
        let len = rest.bytes().take_while(u8::is_ascii_uppercase).count();
        let ends = rest
            .as_bytes()
            .get(len)
            .is_none_or(|next| !next.is_ascii_alphanumeric());
        if !(3..=5).contains(&len) || !ends {
            return None;
        }
        self.at += 1 + len;
        Some(if matches!(&rest[..len], "UTC" | "GMT") {
            0
        } else {
            1
        })
    }
}

impl Date {
    /// Returns the nanoseconds from 1970 to a clock time on the date, as if it were in UTC.
    fn at(self, clock_nanos: u64, near: UnixNanos) -> Option<u64> {
        let on = |year: u64| {
            let part = |number: u64| i8::try_from(number).ok();
            let date = civil::Date::new(i16::try_from(year).ok()?, part(self.month)?, part(self.day)?);
            let seconds = date
                .ok()?
                .duration_since(civil::Date::constant(1970, 1, 1))
                .as_secs();
            u64::try_from(seconds)
                .ok()?
                .checked_mul(SECOND)?
                .checked_add(clock_nanos)
        };
        match self.year {
            Some(year) => on(year),
            None => in_latest_year(near, on),
        }
    }
}

/// Returns the time in the latest year in which it is not in the future of `near`, given the time in each year.
pub(super) fn in_latest_year(near: UnixNanos, on: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    if !near.is_known() {
        return on(LEAP_YEAR);
    }
    let year = 1970 + near.0 / YEAR;
    // A leap day can be up to eight years ago.
    let mut years = (1970..=year + 1).rev().take(10).filter_map(on);
    years.find(|time| *time <= near.0.saturating_add(FUTURE))
}

const YEAR: u64 = 31_556_952 * SECOND;

/// The year of dates without one if the time of the log is unknown.
const LEAP_YEAR: u64 = 2000;

fn clock_nanos(hour: u64, minute: u64, second: u64) -> Option<u64> {
    let is_valid = hour < 24 && minute < 60 && second <= 60;
    is_valid.then(|| ((hour * 60 + minute) * 60 + second) * SECOND)
}

#[cfg(test)]
mod tests;
