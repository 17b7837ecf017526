//! Edge cases of the format on small files. The crate's integration tests have complete files of every writer.

use super::{summary::Data, *};
use crate::{
    logs::sampled::{read_in_any_chunks, read_in_chunks, reasons},
    test_message::{bytes, varint},
};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Counts, ParseReport};

fn double(field: u64, value: f64) -> Vec<u8> {
    [varint(field << 3 | 1), value.to_le_bytes().to_vec()].concat()
}

fn event(step: u64, contents: &[u8]) -> Vec<u8> {
    [
        double(1, 1_795_220_486.5),
        varint(2 << 3),
        varint(step),
        contents.to_vec(),
    ]
    .concat()
}

fn value(tag: &str, contents: &[u8]) -> Vec<u8> {
    bytes(
        5,
        &bytes(1, &[bytes(1, tag.as_bytes()), contents.to_vec()].concat()),
    )
}

fn scalar(tag: &str, number: f32) -> Vec<u8> {
    value(tag, &[varint(2 << 3 | 5), number.to_le_bytes().to_vec()].concat())
}

fn framed(record: &[u8]) -> Vec<u8> {
    let length = (record.len() as u64).to_le_bytes();
    let sum = |bytes: &[u8]| checksum::masked(bytes).to_le_bytes().to_vec();
    [length.to_vec(), sum(&length), record.to_vec(), sum(record)].concat()
}

fn file(events: &[Vec<u8>]) -> Vec<u8> {
    let version = framed(&[double(1, 1_795_220_486.0), bytes(3, b"brain.Event:2")].concat());
    std::iter::once(version)
        .chain(events.iter().map(|event| framed(event)))
        .flatten()
        .collect()
}

fn read(file: &[u8]) -> (Counts, ParseReport) {
    read_in_chunks(&FORMAT, file, file.len().max(1))
}

fn three_losses() -> Vec<u8> {
    file(&[1, 2, 3].map(|step| event(step, &scalar("train/loss", step as f32))))
}

/// RFC 3720, B.4, lists the checksum of 32 zero bytes: `aa 36 91 8a`, little endian.
#[test]
fn checksum_matches_the_rfc_3720_test_vector() {
    let plain = 0x8a91_36aa_u32;
    assert_eq!(
        checksum::masked(&[0; 32]),
        plain.rotate_right(15).wrapping_add(0xa282_ead8)
    );
}

#[test]
fn fast_path_accepts_only_summaries_with_a_single_scalar() {
    let fixed = |number: f32| [varint(2 << 3 | 5), number.to_le_bytes().to_vec()].concat();
    let one = |tag: &str| bytes(1, &[bytes(1, tag.as_bytes()), fixed(0.5)].concat());
    let plain = one("train/loss");
    assert_eq!(summary::lone_scalar(&plain), Some((&b"train/loss"[..], 0.5)));
    let others = [
        Vec::new(),
        [one("a"), one("b")].concat(),
        one(&"long".repeat(40)),
        bytes(1, &[fixed(0.5), bytes(1, b"a")].concat()),
        bytes(1, &[bytes(1, b"a"), fixed(0.5), bytes(9, b"")].concat()),
        plain[..plain.len() - 1].to_vec(),
        [plain.clone(), vec![0]].concat(),
    ];
    for other in others {
        assert_eq!(summary::lone_scalar(&other), None, "{other:?}");
    }
    let walked: Vec<_> = summary::values(&plain).map(Result::unwrap).collect();
    assert_eq!((walked.len(), walked[0].tag), (1, &b"train/loss"[..]));
    assert_eq!(walked[0].data, Data::Scalar(0.5));
}

#[test]
fn chunk_size_does_not_change_the_result_for_event_files() {
    let file = three_losses();
    let (counts, _) = read_in_any_chunks(&FORMAT, &file, 1..file.len());
    assert_eq!((counts.records, counts.points), (4, 6));
}

#[test]
fn a_cut_at_any_byte_loses_only_the_record_that_it_cuts() {
    let file = three_losses();
    for end in 1..file.len() {
        let (counts, skipped) = read(&file[..end]);
        let is_between = reasons(&skipped).is_empty();
        assert!(
            is_between || reasons(&skipped) == [(SkipReason::IncompleteRecord, 1)],
            "{end}"
        );
        assert!(counts.records < 4);
    }
}

#[test]
fn a_flipped_bit_in_a_record_loses_that_record_and_reports_its_position() {
    let mut file = three_losses();
    let one = framed(&event(1, &scalar("train/loss", 1.0))).len();
    let start = file.len() - 2 * one;
    file[start + 20] ^= 0x10;
    let (counts, skipped) = read(&file);
    assert_eq!(counts.records, 3);
    assert_eq!(reasons(&skipped), [(SkipReason::MalformedRecord, 1)]);
    let problem = &skipped.problems()[0];
    assert_eq!(problem.position.offset, start as u64);
    assert!(problem.message.contains("checksum"), "{}", problem.message);
}

#[test]
fn a_flipped_bit_in_a_length_ends_parsing_and_is_reported_once() {
    let mut file = three_losses();
    let one = framed(&event(1, &scalar("train/loss", 1.0))).len();
    let start = file.len() - 2 * one;
    file[start] ^= 1;
    for piece in [1, 7, file.len()] {
        let (counts, skipped) = read_in_chunks(&FORMAT, &file, piece);
        assert_eq!(counts.records, 2);
        assert_eq!(reasons(&skipped), [(SkipReason::MalformedRecord, 1)]);
        assert_eq!(skipped.problems()[0].position.offset, start as u64);
    }
}

#[test]
fn oversized_event_record_is_skipped_and_the_next_is_parsed() {
    let long = event(2, &vec![0; frame::MAX_LENGTH as usize]);
    let mut file = file(&[event(1, &scalar("train/loss", 1.0)), long]);
    file.extend(framed(&event(3, &scalar("train/loss", 3.0))));
    let (counts, skipped) = read_in_chunks(&FORMAT, &file, 100_000);
    assert_eq!(counts.records, 3);
    assert_eq!(reasons(&skipped), [(SkipReason::RecordTooLong, 1)]);
}

#[test]
fn single_element_tensors_of_any_type_are_scalars() {
    let tensor =
        |data_type: u64, contents: Vec<u8>| bytes(8, &[varint(1 << 3), varint(data_type), contents].concat());
    let numbers = |contents: Vec<u8>| {
        let summary = value("x", &contents);
        let found = summary::values(&summary[2..]).next().unwrap().unwrap();
        let Data::Tensor(tensor) = found.data else {
            panic!("no tensor")
        };
        tensor::parse(tensor, 8).unwrap().numbers
    };
    for contents in [
        tensor(1, bytes(4, &2.5_f32.to_le_bytes())),
        tensor(1, bytes(5, &2.5_f32.to_le_bytes())),
        tensor(1, [varint(5 << 3 | 5), 2.5_f32.to_le_bytes().to_vec()].concat()),
        tensor(2, bytes(4, &2.5_f64.to_le_bytes())),
        tensor(2, double(6, 2.5)),
        tensor(14, bytes(4, &0x4020_u16.to_le_bytes())),
    ] {
        assert_eq!(numbers(contents), [2.5]);
    }
    let packed = bytes(10, &[varint(7), varint(u64::MAX)].concat());
    assert_eq!(numbers(tensor(9, packed)), [7.0, -1.0]);
}

#[test]
fn histograms_of_both_generations_keep_every_count() {
    let limits: Vec<u8> = [-1.0, 0.0, f64::MAX]
        .iter()
        .flat_map(|limit: &f64| limit.to_le_bytes())
        .collect();
    let counts: Vec<u8> = [2.0, 3.0, 5.0]
        .iter()
        .flat_map(|count: &f64| count.to_le_bytes())
        .collect();
    let proto = [
        double(1, -4.0),
        double(2, 9.0),
        double(4, 12.5),
        bytes(6, &limits),
        bytes(7, &counts),
    ]
    .concat();
    let found = histogram::parse(&proto).unwrap();
    assert_eq!(
        (found.bounds, found.bucket_counts),
        (vec![-1.0, 0.0], vec![2, 3, 5])
    );
    assert_eq!((found.min, found.max, found.sum), (-4.0, 9.0, 12.5));

    let rows = histogram::of_rows(&[0.0, 1.0, 0.0, 1.0, 2.0, 4.0, 2.0, 3.0, 1.0]);
    assert_eq!(
        (rows.bounds, rows.bucket_counts),
        (vec![0.0, 1.0, 2.0, 3.0], vec![0, 0, 4, 1, 0])
    );
    assert_eq!((rows.min, rows.max, rows.sum.is_nan()), (1.0, 3.0, true));
}

#[test]
fn images_and_graphs_are_skipped_and_counted() {
    let picture = value("samples", &bytes(4, b"PNG"));
    let (counts, skipped) = read(&file(&[event(1, &picture), event(1, &bytes(4, b"graph"))]));
    assert_eq!((counts.records, counts.points), (3, 0));
    assert_eq!(
        reasons(&skipped),
        [
            (SkipReason::Ignored("graph"), 1),
            (SkipReason::Ignored("media"), 1)
        ]
    );
    assert!(!skipped.has_losses());
}

#[test]
fn hyperparameters_become_run_options() {
    let entry = |key: &str, value: Vec<u8>| bytes(1, &[bytes(1, key.as_bytes()), bytes(2, &value)].concat());
    let session = [
        entry("lr", double(2, 0.1)),
        entry("optimizer", bytes(3, b"adam")),
        entry("ema", vec![4 << 3, 1]),
    ];
    let content = bytes(3, &session.concat());
    let plugin = bytes(9, &bytes(1, &[bytes(1, b"hparams"), bytes(2, &content)].concat()));
    let (counts, skipped) = read(&file(&[event(
        0,
        &value("_hparams_/session_start_info", &plugin),
    )]));
    assert_eq!((counts.events, reasons(&skipped)), (3, vec![]));
}

#[test]
fn a_step_that_was_rolled_back_is_recorded_again() {
    let losses = |steps: &[u64]| -> Vec<Vec<u8>> {
        steps
            .iter()
            .map(|step| event(*step, &scalar("train/loss", 1.0)))
            .collect()
    };
    let restart = event(2, &bytes(7, &[1 << 3, 1]));
    let (straight, _) = read(&file(&[losses(&[1, 2, 3]), losses(&[2, 3])].concat()));
    let (restarted, _) = read(&file(
        &[losses(&[1, 2, 3]), vec![restart], losses(&[2, 3])].concat(),
    ));
    assert_eq!((straight.points, restarted.points), (5 + 3, 5 + 5));
}

#[test]
fn event_file_without_a_known_framework_is_still_detected() {
    let file = file(&[event(1, &scalar("novel", 1.0))]);
    assert_eq!(detect(&file), Some("records with the checksums of TFRecord"));
    let identity = identify(&file);
    assert_eq!(
        (identity.framework, identity.start),
        (None, Some(LoggedTime::Utc(UnixNanos(1_795_220_486_000_000_000))))
    );
    assert_eq!(
        detect(&file[..40]),
        Some("records with the checksums of TFRecord")
    );
    assert_eq!((detect(&file[..20]), detect(b"[\n  {\"log\": ")), (None, None));
}
