use super::{date_order::nanos_of, *};

/// 2025-12-13 14:02:11, as if it were UTC.
const EXPECTED: u64 = 1_765_634_531 * SECOND;
/// 2026-11-28.
const NEAR: UnixNanos = UnixNanos(1_795_824_000 * SECOND);

fn parse(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text, NEAR, &DateOrder::default())
}

#[test]
fn local_times_of_every_style_are_parsed() {
    for (text, nanos) in [
        ("2025-12-13 14:02:11", 0),
        ("2025-12-13 14:02:11,123", 123_000_000),
        ("2025-12-13 14:02:11.000000123", 123),
        ("2025/12/13 14:02:11", 0),
        ("2025.12.13 14:02:11", 0),
        ("20251213 14:02:11", 0),
        ("20251213-14:02:11", 0),
        ("20251213T140211", 0),
        ("20251213140211", 0),
        ("2025-12-13_14-02-11", 0),
        ("2025-12-13-14:02:11", 0),
        ("2025-12-13,14:02:11", 0),
        ("2025-12-13:14:02:11", 0),
        ("2025年12月13日 14:02:11", 0),
        ("13/12/2025 14:02:11", 0),
        ("12/13/2025 14:02:11", 0),
        ("12/13/25 14:02:11", 0),
        ("13.12.2025 14:02:11", 0),
        ("13-12-2025 14:02:11", 0),
        ("12-13 14:02:11", 0),
        ("13 Dec 2025 14:02:11", 0),
        ("13-Dec-2025 14:02:11", 0),
        ("Dec 13, 2025 14:02:11", 0),
        ("December 13 2025 14:02:11", 0),
        ("Dec 13 14:02:11", 0),
        ("Sat Dec 13 14:02:11 2025", 0),
        ("Sat Dec 13 14:02:11 CET 2025", 0),
        ("12/13/2025 02:02:11 PM", 0),
        ("I1213 14:02:11.5", 500_000_000),
        ("W20251213 14:02:11.5", 500_000_000),
    ] {
        let expected = Timestamp {
            time: LoggedTime::Local(EXPECTED + nanos),
            len: text.len(),
            can_be_progress: false,
        };
        for rest in ["", " step 10", "] x", ": y", " - INFO"] {
            assert_eq!(parse(&[text, rest].concat()), Some(expected), "{text}{rest}");
        }
    }
    assert_eq!(
        parse("2025-12-13 14:02 step 10").map(|stamp| stamp.time),
        Some(LoggedTime::Local(EXPECTED - 11 * SECOND))
    );
}

#[test]
fn times_with_a_zone_are_instants() {
    for text in [
        "2025-12-13T14:02:11Z",
        "2025-12-13T14:02:11.000Z",
        "2025-12-13 14:02:11 UTC",
        "2025-12-13 14:02:11 Z",
        "2025-12-13T15:02:11+01:00",
        "2025-12-13T15:02:11+0100",
        "2025-12-13 09:02:11 -0500",
        "20251213T140211Z",
        "Sat, 13 Dec 2025 14:02:11 GMT",
        "Sat Dec 13 14:02:11 UTC 2025",
        "13/Dec/2025:14:02:11 +0000",
        "1765634531",
        "1765634531.000",
        "1765634531000",
        "1765634531000000",
        "1765634531000000000",
    ] {
        let expected = Timestamp {
            time: LoggedTime::Utc(UnixNanos(EXPECTED)),
            len: text.len(),
            can_be_progress: false,
        };
        for rest in ["", " step 10", "] x", ": y"] {
            assert_eq!(parse(&[text, rest].concat()), Some(expected), "{text}{rest}");
        }
    }
}

#[test]
fn other_texts_are_not_times() {
    for text in [
        "",
        "step 10",
        "2025-12-13",
        "2025-13-13 14:02:11",
        "2025-02-30 14:02:11",
        "2025-12-13 25:02:11",
        "2025-12-13 noon",
        "12/100 00:31:05",
        "12/100 [00:31<01:38]",
        "1/2/3 14:02:11",
        "100: loss 2.5",
        "1.5 loss",
        "123456789 loss",
        "1765634531x",
        "9765634531 loss",
        "may 5 be right",
        "Mon 5",
        "E0000 00:00:1795221162.374285   23181 port.cc:153] oneDNN",
        "F1 14:02:11",
        "00:31:05 loss",
        "2026-01-0é2 12:00:00",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn words_after_a_time_are_no_zones() {
    for (text, rest) in [
        ("2025-12-13 14:02:11 GPU 3: step 10", " GPU 3: step 10"),
        ("2025-12-13 14:02:11 amp scale 65536", " amp scale 65536"),
    ] {
        let found = parse(text).unwrap();
        assert_eq!(
            (found.time, &text[found.len..]),
            (LoggedTime::Local(EXPECTED), rest)
        );
    }
    let order = DateOrder::default();
    assert_eq!(Timestamp::parse("01.02.2025 Start", NEAR, &order), None);
    let time = Timestamp::parse("03.04.2025 00:00:00 step", NEAR, &order)
        .unwrap()
        .time;
    assert_eq!(nanos_of(time) / DAY, at_day("2025-04-03 00:00:00"));
}

#[test]
fn dates_without_a_year_are_never_in_the_future() {
    let time = |text: &str, near: &str| {
        let near = parse(near).map(|near| UnixNanos(nanos_of(near.time))).unwrap();
        let found = Timestamp::parse(text, near, &DateOrder::default()).unwrap();
        nanos_of(found.time)
    };
    let at = |text: &str| nanos_of(parse(text).unwrap().time);
    for (text, near, expected) in [
        ("Dec 13 14:02:11", "2026-11-28 00:00:00", "2025-12-13 14:02:11"),
        ("Dec 13 14:02:11", "2026-12-13 14:03:00", "2026-12-13 14:02:11"),
        // A local time can be ahead of UTC.
        ("I1213 14:02:11", "2026-12-13 02:00:00", "2026-12-13 14:02:11"),
        ("I1231 23:59:59", "2027-01-01 00:00:05", "2026-12-31 23:59:59"),
        ("I0229 00:00:01", "2027-01-01 00:00:05", "2024-02-29 00:00:01"),
    ] {
        assert_eq!(time(text, near), at(expected), "{text} near {near}");
    }
}

#[test]
fn a_log_keeps_the_order_of_its_dates_until_one_contradicts() {
    let order = DateOrder::default();
    let day = |text: &str| {
        let time = nanos_of(Timestamp::parse(text, NEAR, &order).unwrap().time);
        time / DAY - at_day("2025-01-01 00:00:00")
    };
    assert_eq!(
        day("02/03/2025 00:00:00"),
        31 + 2,
        "the month is first by default"
    );
    assert_eq!(day("13/03/2025 00:00:00"), 31 + 28 + 12);
    assert_eq!(
        day("02/03/2025 00:00:00"),
        31 + 28 + 1,
        "the day is first from now on"
    );
}

fn at_day(text: &str) -> u64 {
    nanos_of(parse(text).unwrap().time) / DAY
}

#[test]
fn an_order_that_leads_to_the_future_is_rejected() {
    let near = UnixNanos(nanos_of(parse("2025-03-05 00:00:00").unwrap().time));
    let found = Timestamp::parse("05/03/2025 00:00:00", near, &DateOrder::default()).unwrap();
    assert_eq!(nanos_of(found.time), near.0, "5 March, and not 3 May");
}

#[test]
fn a_date_that_can_be_progress_is_marked() {
    assert!(parse("10/12 00:31:05 loss").unwrap().can_be_progress);
    assert!(!parse("10-12 00:31:05 loss").unwrap().can_be_progress);
}
