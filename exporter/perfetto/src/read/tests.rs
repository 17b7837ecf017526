//! The reader, on traces that other programs would write.

use std::io::Write;

use super::*;
use crate::wire::Buffer;

/// A trace of packets that `fill` writes.
fn trace(fills: &[&dyn Fn(&mut Buffer)]) -> Vec<u8> {
    let mut out = Buffer::default();
    fills
        .iter()
        .for_each(|fill| out.message(1, |packet| fill(packet)));
    out.as_slice().to_vec()
}

fn begin(out: &mut Buffer, time: u64, track: u64, name: &str) {
    out.uint(packet::TIMESTAMP, time);
    out.uint(packet::SEQUENCE_ID, 1);
    out.message(packet::TRACK_EVENT, |out| {
        out.uint(9, 1);
        out.uint(11, track);
        out.delimited(23, name.as_bytes());
    });
}

fn names(bytes: &[u8]) -> Vec<String> {
    let name = |item| match item {
        Ok(Item::Event(event)) => Some(event.name),
        _ => None,
    };
    TraceReader::new(bytes).filter_map(name).collect()
}

#[test]
fn trace_without_clock_snapshots_keeps_its_own_timestamps() {
    let bytes = trace(&[&|out| begin(out, 42, 7, "a")]);
    let item = TraceReader::new(bytes.as_slice()).next().unwrap().unwrap();
    let Item::Event(event) = item else {
        panic!("{item:?}");
    };
    assert_eq!(event.time, Time::Clock { id: 6, nanos: 42 });
    assert_eq!(event.track_uuid, 7);
}

#[test]
fn other_clocks_are_mapped_to_wall_time_across_several_snapshots() {
    let clock = |out: &mut Buffer, id, at| {
        out.message(1, |out| {
            out.uint(1, id);
            out.uint(2, at);
        });
    };
    let bytes = trace(&[
        &|out| {
            out.message(packet::CLOCK_SNAPSHOT, |out| {
                clock(out, 6, 100);
                clock(out, 3, 50);
            });
        },
        &|out| {
            out.message(packet::CLOCK_SNAPSHOT, |out| {
                clock(out, 6, 200);
                clock(out, 1, 1_000_000);
            });
        },
        &|out| {
            begin(out, 60, 7, "a");
            out.uint(packet::TIMESTAMP_CLOCK_ID, 3);
        },
    ]);
    let item = TraceReader::new(bytes.as_slice()).next().unwrap().unwrap();
    let Item::Event(event) = item else {
        panic!("{item:?}");
    };
    assert_eq!(event.time, Time::Unix(999_910));
}

#[test]
fn compressed_packets_and_compressed_files_are_read() {
    let plain = trace(&[&|out| begin(out, 1, 7, "a"), &|out| begin(out, 2, 7, "b")]);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&plain).unwrap();
    let zlib = zlib.finish().unwrap();
    let zstd = zstd::encode_all(plain.as_slice(), 1).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    for bytes in [
        trace(&[&|out| out.delimited(packet::COMPRESSED_PACKETS, &zlib)]),
        trace(&[&|out| out.delimited(packet::ZSTD_COMPRESSED_PACKETS, &zstd)]),
        gzip.finish().unwrap(),
        zstd.clone(),
    ] {
        assert_eq!(names(&bytes), ["a", "b"]);
    }
}

#[test]
fn unknown_fields_are_skipped_and_counted() {
    let bytes = trace(&[
        &|out| out.delimited(4000, b"a packet from the future"),
        &|out| begin(out, 1, 7, "a"),
        &|out| {
            begin(out, 2, 7, "relies on what was lost");
            out.uint(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
        },
    ]);
    let mut reader = TraceReader::new(bytes.as_slice());
    assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 1);
    let expected = ReadCounts {
        packets: 3,
        unknown: 1,
        without_state: 1,
    };
    assert_eq!(reader.counts(), expected);
}

#[test]
fn truncated_trace_yields_complete_packets_and_the_offset_of_the_cut() {
    let bytes = trace(&[&|out| begin(out, 1, 7, "a"), &|out| begin(out, 2, 7, "b")]);
    let second = bytes.len() / 2;
    for cut in second + 1..bytes.len() {
        let read: Vec<_> = TraceReader::new(&bytes[..cut]).collect();
        assert_eq!(read.len(), 2);
        let error = read[1].as_ref().unwrap_err();
        assert!(matches!(error.kind, ReadErrorKind::TornTail), "{error}");
        assert_eq!(error.offset, second as u64);
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gzip.write_all(&bytes).unwrap();
    let gzip = gzip.finish().unwrap();
    let error = TraceReader::new(&gzip[..gzip.len() - 10]).find_map(Result::err);
    assert!(matches!(error.unwrap().kind, ReadErrorKind::TornTail));
}

#[test]
fn malformed_packet_does_not_end_the_trace() {
    let bytes = trace(&[&|out| out.append(&[0x0b]), &|out| begin(out, 2, 7, "b")]);
    let read: Vec<_> = TraceReader::new(bytes.as_slice()).collect();
    assert_eq!(
        read[0].as_ref().unwrap_err().to_string(),
        "byte 0: a field has a wire type that Perfetto does not use at byte 0"
    );
    assert!(read[1].is_ok());
}

/// Writes the descriptor of a counter whose fields `fill` writes.
fn counter(out: &mut Buffer, track: u64, fill: impl Fn(&mut Buffer)) {
    out.uint(packet::SEQUENCE_ID, 1);
    out.message(packet::TRACK_DESCRIPTOR, |out| {
        out.uint(1, track);
        out.message(8, fill);
    });
}

fn count(out: &mut Buffer, track: u64, value: u64) {
    out.uint(packet::SEQUENCE_ID, 1);
    out.message(packet::TRACK_EVENT, |out| {
        out.uint(9, 4);
        out.uint(11, track);
        out.uint(30, value);
    });
}

/// Returns the values of all counters with their tracks.
fn values(bytes: &[u8]) -> Vec<(u64, CounterReading)> {
    let value = |item| match item {
        Ok(Item::Event(event)) => Some((event.track_uuid, event.value?)),
        _ => None,
    };
    TraceReader::new(bytes).filter_map(value).collect()
}

#[test]
fn incremental_counters_add_up_and_multipliers_apply() {
    const INCREMENTAL: u64 = 2;
    const KIBIBYTES: u64 = 3;
    let bytes = trace(&[
        &|out| counter(out, INCREMENTAL, |out| out.uint(5, 1)),
        &|out| counter(out, KIBIBYTES, |out| out.uint(4, 1024)),
        &|out| count(out, INCREMENTAL, 10),
        &|out| count(out, INCREMENTAL, 10),
        &|out| count(out, KIBIBYTES, 2),
        &|out| count(out, INCREMENTAL, 5),
        &|out| {
            count(out, INCREMENTAL, 7);
            out.uint(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
        },
    ]);
    let expected = [(2, 10), (2, 20), (3, 2048), (2, 25), (2, 7)];
    assert_eq!(
        values(&bytes),
        expected.map(|(track, value)| (track, CounterReading::Int(value)))
    );
}

#[test]
fn extra_counters_of_a_slice_are_events_of_their_tracks() {
    let bytes = trace(&[
        &|out| {
            out.uint(packet::SEQUENCE_ID, 1);
            out.message(packet::DEFAULTS, |out| out.message(11, |out| out.uint(31, 4)));
        },
        &|out| {
            out.uint(packet::SEQUENCE_ID, 1);
            out.message(packet::TRACK_EVENT, |out| {
                out.uint(9, 1);
                out.uint(11, 7);
                out.uint(12, 100);
                out.uint(45, 5);
                out.fixed64(46, 0.5_f64.to_bits());
            });
        },
    ]);
    assert_eq!(
        values(&bytes),
        [(4, CounterReading::Int(100)), (5, CounterReading::Double(0.5))]
    );
    assert_eq!(names(&bytes).len(), 3);
}

proptest::proptest! {
    #[test]
    fn trace_reader_never_panics_on_arbitrary_bytes(bytes in proptest::collection::vec(0u8..=255, 0..300)) {
        TraceReader::new(bytes.as_slice()).for_each(drop);
        let framed = trace(&[&|out: &mut Buffer| out.append(&bytes)]);
        TraceReader::new(framed.as_slice()).for_each(drop);
        let event = trace(&[&|out: &mut Buffer| out.delimited(packet::TRACK_EVENT, &bytes)]);
        TraceReader::new(event.as_slice()).for_each(drop);
    }
}
