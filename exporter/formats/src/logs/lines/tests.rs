use super::*;
use crate::logs::sampled::reasons;
use pulsetrain_record::{Counts, ParseReport};

#[derive(Default)]
struct Words(Vec<(String, UnixNanos)>, Vec<SourcePosition>);

impl LineFormat for Words {
    fn signature(text: &str) -> Option<&'static str> {
        text.starts_with("step").then_some("a step")
    }

    fn line(&mut self, line: &Line<'_>, _: &mut Recorder<'_>) -> bool {
        self.0.push((line.text.to_owned(), line.read_time()));
        self.1.push(line.position());
        true
    }
}

fn read(pieces: &[&[u8]]) -> (Vec<(String, UnixNanos)>, Counts, ParseReport) {
    let mut parser = LineParser::<Words>::default();
    let mut recorder = Recorder::new(Run::default(), |_| {});
    let mut unread = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        unread.extend_from_slice(piece);
        let window = Window {
            bytes: &unread,
            start: SourcePosition::default(),
            is_last: number + 1 == pieces.len(),
            time: ReadTime {
                unix_nanos: UnixNanos(5_000_000),
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
fn line_number_counts_newlines_and_offset_counts_every_byte() {
    let mut parser = LineParser::<Words>::default();
    let mut recorder = Recorder::new(Run::default(), |_| {});
    let window = Window {
        bytes: b"a\r\nbar\rbar\n\nc\n",
        start: SourcePosition { offset: 100, line: 7 },
        is_last: false,
        time: ReadTime::default(),
    };
    assert_eq!(parser.parse(window, &mut recorder), window.bytes.len());
    let places = parser
        .format
        .1
        .iter()
        .map(|position| (position.offset, position.line));
    assert_eq!(
        places.collect::<Vec<_>>(),
        [(100, 7), (103, 8), (107, 8), (112, 10)]
    );
}

fn texts(pieces: &[&[u8]]) -> Vec<String> {
    read(pieces).0.into_iter().map(|(text, _)| text).collect()
}

#[test]
fn newline_and_carriage_return_end_a_line() {
    assert_eq!(texts(&[b"a\nb\r\nc\rd\n"]), ["a", "b", "c", "d"]);
    assert_eq!(texts(&[b"a\r", b"\nb", b"c\n"]), ["a", "bc"]);
}

#[test]
fn control_sequences_and_invalid_utf8_are_removed() {
    assert_eq!(
        texts(&[b"\x1b[1m>> eval\x1b[22m \xff\n\x1b[3"]),
        [">> eval \u{fffd}"]
    );
}

#[test]
fn ranks_beyond_the_limit_are_counted_without_allocating_a_parser() {
    let ranks = 5000;
    let text: String = (0..ranks).rev().map(|rank| format!("{rank}: step 1\n")).collect();
    let mut parser = LineParser::<Words>::default();
    let mut recorder = Recorder::new(Run::default(), |_| {});
    let window = Window {
        bytes: text.as_bytes(),
        start: SourcePosition::default(),
        is_last: true,
        time: ReadTime::default(),
    };
    parser.parse(window, &mut recorder);
    let kept = parser.of_ranks.len();
    assert!(kept < ranks, "{kept}");
    let (counts, skipped) = recorder.finish();
    assert_eq!(counts.records, ranks as u64);
    assert_eq!(
        reasons(&skipped),
        [(SkipReason::TooManyRanks, (ranks - kept) as u64)]
    );
}

#[test]
fn lines_without_a_time_keep_their_order() {
    let times: Vec<UnixNanos> = read(&[b"a\nb\n"]).0.into_iter().map(|(_, time)| time).collect();
    assert_eq!(times, [5_000_000, 6_000_000].map(UnixNanos));
}

#[test]
fn last_line_without_an_end_is_reported_and_not_parsed() {
    let (lines, _, skipped) = read(&[b"a\nstep 1 loss 2.3"]);
    assert_eq!(lines.len(), 1);
    assert_eq!(reasons(&skipped), [(SkipReason::IncompleteRecord, 1)]);
}
