//! Logs that are lines: bytes in, clean text out, one line at a time.
//!
//! A line ends at a newline, a carriage return or both, for progress bars write only the latter. Colours are taken out, torn
//! UTF-8 is replaced, and what a launcher puts before the lines of its workers is taken off ([`Ranked`]). A last line without
//! an end may be half of one: it is read only where its format can tell.

use std::collections::BTreeMap;

use super::{
    Identity, KeyUse, LogParser, Pace, ReadTime, Window,
    clean::{CleanText, clean},
    leading_time::leading_time,
    line_clock::LineClock,
    ranked::Ranked,
};
use pulsetrain_record::{Place, Rank, Recorder, Run, SkipReason};

/// A format whose records are lines.
pub(super) trait LineFormat: Send {
    /// Whether a last line without an end shows by itself that it is whole, as a bar in brackets does.
    fn is_whole(_text: &str) -> bool
    where
        Self: Sized,
    {
        false
    }

    /// By what a line shows that it is of this format.
    fn sign(text: &str) -> Option<&'static str>
    where
        Self: Sized;

    /// Whether a last line without an end is the beginning of a record.
    fn is_begun(text: &str) -> bool
    where
        Self: Sized,
    {
        Self::sign(text).is_some()
    }

    /// Returns what became of the keys so far, for formats that read unknown logs.
    fn key_uses(&mut self) -> Vec<KeyUse> {
        Vec::new()
    }

    /// Records what a line says; answers whether it was a record.
    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool;
}

/// A line of a log.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Its text, without its end and without colours.
    pub(super) text: &'a str,
    place: Place,
    time: ReadTime,
    clock: &'a LineClock,
}

impl Line<'_> {
    /// Returns the time of a record without one of its own: that at the beginning of the line, or one of the log's clock. To be
    /// called once a record.
    pub(super) fn read_time(&self) -> u64 {
        self.clock.time(self.text, self.time)
    }

    /// Near which time the line was written, for dates without a year.
    pub(super) fn near_unix_nanos(&self) -> u64 {
        self.time.unix_nanos
    }

    /// Whether [`Self::read_time`] is when the line was written, so that a span can end there.
    pub(super) fn is_live(&self) -> bool {
        self.time.is_live || leading_time(self.text).is_some()
    }

    /// Where the line begins.
    pub(super) fn place(&self) -> Place {
        self.place
    }
}

/// Parses a log by its lines.
pub(super) struct LineParser<F> {
    format: F,
    /// The format's state of each rank, where the lines of several are in one log: as many as a recorder has room for.
    of_ranks: BTreeMap<i64, F>,
    /// Begins to read another rank; nothing where what begins a line is for the user to say.
    begin: Option<Box<dyn Fn() -> F + Send>>,
    /// The rank of the line whose first part a carriage return has ended.
    rank: Option<Rank>,
    clock: LineClock,
    /// Whether the rest of the line that stands here was lost.
    is_torn: bool,
}

impl<F: LineFormat + Default + 'static> Default for LineParser<F> {
    fn default() -> Self {
        Self::of_ranks(F::default)
    }
}

impl<F: LineFormat> LogParser for LineParser<F> {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let mut done = 0;
        let mut place = window.start;
        self.clock.set_local(recorder.local_clock());
        let mut texts = CleanText::of(window.bytes);
        let has_zeros = memchr::memchr(0, window.bytes).is_some();
        for end in memchr::memchr2_iter(b'\n', b'\r', window.bytes) {
            if std::mem::take(&mut self.is_torn) || end == done {
                // Nothing is there, or nothing that is whole.
            } else if has_zeros && memchr::memchr(0, &window.bytes[done..end]).is_some() {
                self.line_with_zeros(&window.bytes[done..end], false, place, window.time, recorder);
            } else {
                self.line(&texts.line(done..end), place, window.time, recorder);
            }
            if window.bytes[end] == b'\n' {
                self.rank = None;
            }
            done = end + 1;
            place.offset = window.start.offset + done as u64;
            place.line += u64::from(window.bytes[end] == b'\n');
        }
        if window.is_last && done < window.bytes.len() && !self.is_torn {
            self.line_with_zeros(&window.bytes[done..], true, place, window.time, recorder);
            done = window.bytes.len();
        }
        done
    }

    fn lose_sync(&mut self) {
        self.is_torn = true;
    }

    fn invented_times(&self) -> u64 {
        self.clock.invented()
    }

    fn set_pace(&mut self, pace: Pace) {
        self.clock.set_pace(pace);
    }

    fn key_uses(&mut self) -> Vec<KeyUse> {
        let mut all = self.format.key_uses();
        for other in self.of_ranks.values_mut().flat_map(F::key_uses) {
            if all.iter().all(|known| known.key != other.key) {
                all.push(other);
            }
        }
        all
    }
}

impl<F: LineFormat> LineParser<F> {
    /// A parser of a log that may have the lines of several ranks: `begin` begins the format of each.
    pub(super) fn of_ranks(begin: impl Fn() -> F + Send + 'static) -> Self {
        Self {
            format: begin(),
            begin: Some(Box::new(begin)),
            of_ranks: BTreeMap::new(),
            rank: None,
            clock: LineClock::default(),
            is_torn: false,
        }
    }

    /// A parser for a format that begins with something known.
    pub(super) fn of(format: F) -> Self {
        Self {
            format,
            of_ranks: BTreeMap::new(),
            begin: None,
            rank: None,
            clock: LineClock::default(),
            is_torn: false,
        }
    }

    /// Returns the format of lines without a rank.
    pub(super) fn format(&self) -> &F {
        &self.format
    }

    fn line(&mut self, text: &str, place: Place, time: ReadTime, recorder: &mut Recorder<'_>) {
        let ranked = self.ranked(text);
        let line = Line {
            text: ranked.text,
            place,
            time,
            clock: &self.clock,
        };
        self.rank = ranked.rank.or(self.rank);
        let has_room = recorder.of_rank(self.rank);
        let format = match (self.rank, &self.begin) {
            (Some(rank), Some(begin)) if has_room => self.of_ranks.entry(rank.number()).or_insert_with(begin),
            _ => &mut self.format,
        };
        if format.line(&line, recorder) {
            recorder.end_of_record();
            if !has_room {
                recorder.skip(SkipReason::TooManyRanks, place, || {
                    "the log has too many ranks; the records of further ones count as the run's own"
                        .to_owned()
                });
            }
        }
    }

    /// A line without what a launcher put before it.
    fn ranked<'l>(&self, text: &'l str) -> Ranked<'l> {
        if self.begin.is_some() {
            Ranked::of(text)
        } else {
            Ranked { rank: None, text }
        }
    }

    /// A line with bytes in it that were never written: a machine that went down leaves zeros in place of the last of them, and
    /// so does a writer whose log was emptied under it. What stands before them has lost its end.
    fn line_with_zeros(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        place: Place,
        time: ReadTime,
        recorder: &mut Recorder<'_>,
    ) {
        let mut rest = bytes;
        while let Some(zero) = memchr::memchr(0, rest) {
            let at = place.advanced_by(&bytes[..bytes.len() - rest.len()]);
            let zeros = rest[zero..].iter().take_while(|byte| **byte == 0).count();
            if zero > 0 {
                self.last_line(&rest[..zero], at, time, recorder);
            }
            recorder.skip(SkipReason::UnrecognisedBytes, at.advanced_by(&rest[..zero]), || {
                format!("{zeros} bytes are zero, which no text has: they may stand where something was never written")
            });
            rest = &rest[zero + zeros..];
        }
        let at = place.advanced_by(&bytes[..bytes.len() - rest.len()]);
        match rest {
            [] => {}
            _ if is_last => self.last_line(rest, at, time, recorder),
            _ => self.line(&clean(rest), at, time, recorder),
        }
    }

    /// The line that the input ends in: a number in it may lack its last digits.
    fn last_line(&mut self, bytes: &[u8], place: Place, time: ReadTime, recorder: &mut Recorder<'_>) {
        let cleaned = clean(bytes);
        let text = self.ranked(&cleaned).text;
        if F::is_whole(text) {
            self.line(&cleaned, place, time, recorder);
        } else if F::is_begun(text) {
            recorder.skip(SkipReason::IncompleteRecord, place, || {
                "the input ends within this line".to_owned()
            });
        }
    }
}

/// The first line that bears a format's sign, with the sign.
pub(super) fn recognise<F: LineFormat>(head: &[u8]) -> Option<&'static str> {
    signed_line::<F>(head).map(|(_, sign)| sign)
}

/// A run is known by everything up to the first line that bears the format's sign.
pub(super) fn identify<F: LineFormat>(head: &[u8]) -> Identity {
    let end = signed_line::<F>(head).map_or(0, |(end, _)| end);
    Identity {
        first_record: text_of(head)[..end].to_vec(),
        ..Identity::default()
    }
}

/// Identifies a run by everything up to the end of the first line that a parser records.
pub(super) fn identify_by(mut parser: Box<dyn LogParser>, head: &[u8]) -> Identity {
    let mut recorder = Recorder::new(Run::default(), |_| {});
    let mut is_record = |bytes, is_last| {
        let window = Window {
            bytes,
            start: Place::default(),
            is_last,
            time: ReadTime::default(),
        };
        parser.parse(window, &mut recorder);
        recorder.counts().records > 0
    };
    let mut start = 0;
    let mut ends = memchr::memchr2_iter(b'\n', b'\r', head);
    let end = ends.find(|end| is_record(&head[std::mem::replace(&mut start, end + 1)..=*end], false));
    let end = end.or_else(|| is_record(&head[start..], true).then_some(head.len()));
    Identity {
        first_record: head[..end.unwrap_or(0)].to_vec(),
        ..Identity::default()
    }
}

/// What is text of the first bytes. A file of another kind may hold what a program printed; text has no zeros but where
/// something was never written.
fn text_of(head: &[u8]) -> &[u8] {
    let zeros = head.iter().take_while(|byte| **byte == 0).count();
    let text = &head[zeros..];
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

fn signed_line<F: LineFormat>(head: &[u8]) -> Option<(usize, &'static str)> {
    let head = text_of(head);
    let mut start = 0;
    for end in memchr::memchr2_iter(b'\n', b'\r', head) {
        let line = clean(&head[start..end]);
        if let Some(sign) = F::sign(Ranked::of(&line).text) {
            return Some((end, sign));
        }
        start = end + 1;
    }
    let last = clean(&head[start..]);
    let last = Ranked::of(&last).text;
    let sign = F::sign(last).filter(|_| F::is_whole(last));
    sign.map(|sign| (head.len(), sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulsetrain_record::{Counts, Skipped};

    #[derive(Default)]
    struct Words(Vec<(String, u64)>, Vec<Place>);

    impl LineFormat for Words {
        fn sign(text: &str) -> Option<&'static str> {
            text.starts_with("step").then_some("a step")
        }

        fn line(&mut self, line: &Line<'_>, _: &mut Recorder<'_>) -> bool {
            self.0.push((line.text.to_owned(), line.read_time()));
            self.1.push(line.place());
            true
        }
    }

    fn read(pieces: &[&[u8]]) -> (Vec<(String, u64)>, Counts, Skipped) {
        let mut parser = LineParser::<Words>::default();
        let mut recorder = Recorder::new(Run::default(), |_| {});
        let mut unread = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            unread.extend_from_slice(piece);
            let window = Window {
                bytes: &unread,
                start: Place::default(),
                is_last: number + 1 == pieces.len(),
                time: ReadTime {
                    unix_nanos: 5_000_000,
                    is_live: false,
                },
            };
            let done = parser.parse(window, &mut recorder);
            unread.drain(..done);
        }
        let (counts, skipped) = recorder.finish();
        (parser.format.0, counts, skipped)
    }

    #[test]
    fn lines_are_counted_by_newlines_and_bytes_by_all() {
        let mut parser = LineParser::<Words>::default();
        let mut recorder = Recorder::new(Run::default(), |_| {});
        let window = Window {
            bytes: b"a\r\nbar\rbar\n\nc\n",
            start: Place { offset: 100, line: 7 },
            is_last: false,
            time: ReadTime::default(),
        };
        assert_eq!(parser.parse(window, &mut recorder), window.bytes.len());
        let places = parser.format.1.iter().map(|place| (place.offset, place.line));
        assert_eq!(
            places.collect::<Vec<_>>(),
            [(100, 7), (103, 8), (107, 8), (112, 10)]
        );
    }

    fn texts(pieces: &[&[u8]]) -> Vec<String> {
        read(pieces).0.into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn every_kind_of_line_end_ends_a_line() {
        assert_eq!(texts(&[b"a\nb\r\nc\rd\n"]), ["a", "b", "c", "d"]);
        assert_eq!(texts(&[b"a\r", b"\nb", b"c\n"]), ["a", "bc"]);
    }

    #[test]
    fn colours_and_torn_characters_are_taken_out() {
        assert_eq!(
            texts(&[b"\x1b[1m>> eval\x1b[22m \xff\n\x1b[3"]),
            [">> eval \u{fffd}"]
        );
    }

    #[test]
    fn records_of_ranks_beyond_the_limit_are_counted_and_cost_no_parser() {
        let ranks = 5000;
        let text: String = (0..ranks).map(|rank| format!("{rank}: step 1\n")).collect();
        let mut parser = LineParser::<Words>::default();
        let mut recorder = Recorder::new(Run::default(), |_| {});
        let window = Window {
            bytes: text.as_bytes(),
            start: Place::default(),
            is_last: true,
            time: ReadTime::default(),
        };
        parser.parse(window, &mut recorder);
        let kept = parser.of_ranks.len();
        assert!(kept < ranks, "{kept}");
        let (counts, skipped) = recorder.finish();
        assert_eq!(counts.records, ranks as u64);
        assert_eq!(
            skipped.counts().collect::<Vec<_>>(),
            [(SkipReason::TooManyRanks, (ranks - kept) as u64)]
        );
    }

    #[test]
    fn lines_without_a_time_keep_their_order() {
        let times: Vec<u64> = read(&[b"a\nb\n"]).0.into_iter().map(|(_, time)| time).collect();
        assert_eq!(times, [5_000_000, 6_000_000]);
    }

    #[test]
    fn a_last_line_without_an_end_is_said_and_not_read() {
        let (lines, _, skipped) = read(&[b"a\nstep 1 loss 2.3"]);
        assert_eq!(lines.len(), 1);
        assert_eq!(
            skipped.counts().collect::<Vec<_>>(),
            [(SkipReason::IncompleteRecord, 1)]
        );
    }
}
