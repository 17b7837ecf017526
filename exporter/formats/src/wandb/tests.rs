//! Edge cases of the format on small files. The crate's integration tests have complete files.

use super::*;
use crate::{
    logs::{
        LogReader, ReadLimits,
        sampled::{Sampled, read_in_any_chunks, read_in_chunks, reasons},
    },
    test_message::{bytes, varint},
};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::Run;

fn item(field: u64, key: &str, json: &str) -> Vec<u8> {
    bytes(
        field,
        &[bytes(2, key.as_bytes()), bytes(16, json.as_bytes())].concat(),
    )
}

fn history(items: &[(&str, &str)]) -> Vec<u8> {
    let items: Vec<u8> = items.iter().flat_map(|(key, json)| item(1, key, json)).collect();
    bytes(2, &items)
}

fn step(number: u64) -> Vec<u8> {
    let (number, time) = (number.to_string(), format!("1.79522048{number}5e+09"));
    history(&[("_step", &number), ("_timestamp", &time), ("train/loss", "2.5")])
}

fn chunk(kind: u8, data: &[u8]) -> Vec<u8> {
    let covered = [&[kind], data].concat();
    let sum = crc32fast::hash(&covered).to_le_bytes();
    [&sum[..], &(data.len() as u16).to_le_bytes(), &covered].concat()
}

/// A file of records, cut into chunks as wandb does.
fn file(records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = blocks::MAGIC.to_vec();
    for record in records {
        let mut rest = &record[..];
        let mut is_first = true;
        loop {
            let left = (32 << 10) - file.len() % (32 << 10);
            if left < 7 {
                file.extend(vec![0; left]);
                continue;
            }
            let len = rest.len().min(left - 7);
            let kind = match (is_first, len == rest.len()) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            file.extend(chunk(kind, &rest[..len]));
            (rest, is_first) = (&rest[len..], false);
            if rest.is_empty() {
                break;
            }
        }
    }
    file
}

#[test]
fn records_spanning_blocks_are_reassembled_at_any_chunk_size() {
    let long = history(&[("_step", "1"), ("note", &format!("\"{}\"", "x".repeat(100_000)))]);
    let file = file(&[step(0), long, step(2)]);
    assert!(file.len() > 3 * (32 << 10));
    let sizes = [1, 7, 999, 32 << 10, (32 << 10) + 1];
    let (counts, skipped) = read_in_any_chunks(&FORMAT, &file, sizes);
    assert_eq!((counts.records, counts.points, counts.events), (3, 4, 1));
    assert!(!skipped.has_losses());
}

#[test]
fn bit_flip_loses_only_one_wandb_record() {
    let mut file = file(&[step(0), step(1), step(2)]);
    let at = file.len() - 2 * (file.len() - 7) / 3 + 20;
    file[at] ^= 1;
    let (counts, skipped) = read_in_chunks(&FORMAT, &file, file.len());
    assert_eq!((counts.records, counts.points), (2, 4));
    assert_eq!(
        skipped.counts().find(|(reason, _)| reason.is_loss()),
        Some((SkipReason::MalformedRecord, 1))
    );
}

#[test]
fn a_broken_chunk_skips_to_the_next_block() {
    let mut records: Vec<_> = (0..600).map(|_| step(1)).collect();
    records.push(step(9));
    let mut file = file(&records);
    // The kind of the first chunk.
    file[13] = 77;
    for piece in [64, file.len()] {
        let (counts, skipped) = read_in_chunks(&FORMAT, &file, piece);
        assert!(counts.records > 100 && counts.records < 500, "{}", counts.records);
        let losses: Vec<_> = reasons(&skipped)
            .into_iter()
            .filter(|(reason, _)| reason.is_loss())
            .collect();
        // The chunk itself, and the end of the record that crosses into the next block.
        assert_eq!(losses, [(SkipReason::MalformedRecord, 2)]);
    }
}

#[test]
fn a_file_that_is_still_written_ends_in_an_incomplete_record() {
    let file = file(&[step(0), step(1)]);
    let (counts, skipped) = read_in_chunks(&FORMAT, &file[..file.len() - 3], file.len());
    assert_eq!(counts.records, 1);
    assert!(reasons(&skipped).contains(&(SkipReason::IncompleteRecord, 1)));
}

#[test]
fn summary_values_are_kept_only_for_keys_without_history() {
    let summary = bytes(
        3,
        &[item(1, "train/loss", "2.5"), item(1, "best_epoch", "7")].concat(),
    );
    let file = file(&[step(0), summary.clone(), step(1), summary]);
    let (counts, skipped) = read_in_chunks(&FORMAT, &file, file.len());
    // A loss and a step twice, and the best epoch once.
    assert_eq!(counts.points, 5);
    let wandb_summary = reasons(&skipped)
        .into_iter()
        .find(|(reason, _)| reason.as_str() == "wandb_summary");
    // Three of the four values of the summaries: the last best epoch is the one that is kept.
    assert_eq!(wandb_summary, Some((SkipReason::Ignored("wandb_summary"), 3)));
}

#[test]
fn values_are_numbers_texts_histograms_or_files() {
    use item::{ItemValue, value};
    assert!(matches!(value("NaN"), ItemValue::Number(number) if number.is_nan()));
    assert_eq!(value("-Infinity"), ItemValue::Number(f64::NEG_INFINITY));
    assert_eq!(value("1.795e+09"), ItemValue::Number(1.795e9));
    assert_eq!(value("\"oh \\\"hi\\\"\""), ItemValue::Text("oh \"hi\"".into()));
    assert_eq!(
        (value("true"), value("null"), value("[1]")),
        (ItemValue::Number(1.0), ItemValue::Null, ItemValue::Other)
    );
    assert_eq!(
        value(r#"{"_type": "image-file", "path": "a.png"}"#),
        ItemValue::Media
    );
    let packed =
        r#"{"_type": "histogram", "values": [1, 2], "packedBins": {"min": 0, "size": 0.5, "count": 2}}"#;
    let bins = r#"{"_type": "histogram", "values": [1, 2], "bins": [0, 0.5, 1]}"#;
    assert_eq!(format!("{:?}", value(packed)), format!("{:?}", value(bins)));
    assert!(format!("{:?}", value(bins)).contains("bucket_counts: [0, 1, 2, 0]"));
}

/// Reads a record with a key and its JSON, and others. Returns the key, its metric, the expected value and the output.
fn read_row<'r>(row: &'r str, others: &[(&str, &str)]) -> (&'r str, &'r str, f64, Sampled) {
    let mut words = row.split(' ');
    let [key, json, metric, value] = [(); 4].map(|()| words.next().unwrap());
    assert_eq!(words.next(), None, "{row}");
    let clock = [("_step", "10"), ("_timestamp", "1.795220480e+09"), (key, json)];
    let step = history(&[&clock, others].concat());
    let read = Sampled::read_file(&FORMAT, &file(&[step]));
    (key, metric, value.parse().unwrap(), read)
}

/// Keys of each trainer with their JSON, the metrics, and the expected values in our units.
#[test]
fn wandb_keys_are_mapped_by_trainer() {
    for row in [
        "train/tokens_per_sec 1129.5 train.throughput.tokens 1129.5",
        "train/mfu 0.41 train.mfu 0.41",
        "train/lr 0.0003 train.learning_rate 0.0003",
        "train/step_time_sec 0.25 train.step.duration 0.25",
        "gpu/peak_gb 2.5 memory.framework.peak 2684354560",
        "smoothed/mfu 0.4 train.smoothed.mfu 0.4",
        "moe/expert_balance 0.6 moe.expert_balance 0.6",
        "eval/perplexity 611.9 eval.perplexity 611.9",
        "loss/c4 2.25 data.loss 2.25",
        "data/c4/tokens 4096 data.consumed_tokens 4096",
    ] {
        let smoothed = [
            ("smoothed/loss", "2.6"),
            ("smoothed/step_time", "0.5"),
            ("smoothed/tokens_per_sec", "1130"),
        ];
        let (key, metric, value, read) = read_row(row, &[&[("train/loss", "2.5")], &smoothed[..]].concat());
        assert_eq!(read.values(metric), [value], "{key}");
        assert_eq!(read.values("train.custom"), [0.0; 0], "{key}");
        assert!(!read.skipped.has_losses());
    }
}

/// Newer versions flatten maps. Histograms and pictures are reassembled.
#[test]
fn flattened_histograms_and_files_are_reassembled() {
    let part = |parts: [&str; 2], json: &str| {
        let keys = parts.map(|part| bytes(2, part.as_bytes())).concat();
        bytes(1, &[keys, bytes(16, json.as_bytes())].concat())
    };
    let record = [
        item(1, "_step", "3"),
        part(["hist", "values"], "[1,2]"),
        part(["img", "_type"], "\"image-file\""),
        part(["img", "width"], "4"),
        part(["hist", "_type"], "\"histogram\""),
        part(["hist", "bins"], "[0,0.5,1]"),
        part(["img", "path"], "\"media/img.png\""),
        part(["plain", "x"], "1.5"),
    ]
    .concat();
    let summary = [
        part(["hist", "_type"], "\"histogram\""),
        part(["img", "width"], "4"),
    ]
    .concat();
    let read = Sampled::read_file(&FORMAT, &file(&[bytes(2, &record), bytes(3, &summary)]));
    assert_eq!(read.attributes("train.custom"), ["train.custom.name=plain.x"]);
    assert_eq!(read.counts.points, 3, "the number, the distribution and the step");
    assert_eq!(read.counts.events, 0);
    let left_out = |rule: &str| {
        let mut counts = read.skipped.counts();
        counts.find_map(|(reason, count)| (reason.as_str() == rule).then_some(count))
    };
    assert_eq!((left_out("media"), left_out("wandb_summary")), (Some(1), Some(2)));
    assert_eq!(left_out("wandb_clock"), Some(1));
}

/// Keys of torchtitan with their JSON, the metrics, and the expected values in our units.
#[test]
fn units_in_torchtitan_keys_are_converted() {
    for row in [
        "loss_metrics/global_max_loss 2.75 train.max_loss 2.75",
        "throughput(tps) 3200 train.throughput.tokens_per_device 3200",
        "wps 3200 train.throughput.tokens_per_device 3200",
        "tflops 180.5 train.throughput.flops_per_device 180.5e12",
        "mfu(%) 50 train.mfu 0.5",
        "n_tokens_seen 4096 train.tokens 4096",
        "lr/AdamW 0.0003 train.learning_rate 0.0003",
        "time_metrics/end_to_end(s) 0.5 train.step.duration 0.5",
        "time_metrics/data_loading(s) 0.25 perf.data_time 0.25",
        "memory/max_active(GiB) 2.5 memory.framework.peak 2684354560",
        "memory/max_reserved(GiB) 4 memory.framework.reserved 4294967296",
        "memory/max_reserved(%) 25 memory.framework.utilization 0.25",
        "memory/num_alloc_retries 3 memory.framework.alloc_retries 3",
        "validation_metrics/loss 3.5 eval.loss 3.5",
        "validation_metrics/throughput(tps) 9000 eval.throughput.tokens_per_device 9000",
        "memory/num_ooms -1 train.custom -1",
        "memory/max_active(%) 20 memory.framework.active_utilization 0.2",
    ] {
        let (key, metric, value, read) = read_row(row, &[("loss_metrics/global_avg_loss", "2.5")]);
        assert_eq!(read.values(metric), [value], "{key}");
        assert_eq!(read.values("train.loss"), [2.5]);
        assert!(!read.skipped.has_losses());
        let unknown = read
            .skipped
            .counts()
            .filter(|(reason, _)| *reason == SkipReason::UnknownName);
        assert_eq!(unknown.count(), 0, "{key}");
    }
}

#[test]
fn files_of_a_resumed_run_share_its_identity() {
    let of = |start: u64, first: u64| {
        let run = [
            bytes(1, b"1c2e8f8a"),
            bytes(8, b"quick-fox-7"),
            number(14, first),
            bytes(17, &[8, start as u8]),
        ]
        .concat();
        file(&[bytes(17, &run), step(first)])
    };
    let (first, resumed) = (identify(&of(100, 0)), identify(&of(120, 5)));
    assert_eq!(first.first_record, resumed.first_record);
    assert_eq!(first.run_name, resumed.run_name);
    let start = |seconds: u64| Some(LoggedTime::Utc(UnixNanos(seconds * 1_000_000_000)));
    assert_eq!((first.start, resumed.start), (start(100), start(120)));
}

#[test]
fn system_gpu_statistics_are_mapped_to_registry_metrics() {
    let stats = [
        item(3, "gpu.1.gpu", "50"),
        item(3, "gpu.1.powerWatts", "410.5"),
        item(3, "gpu.1.pcieLinkGen", "5"),
        item(3, "gpu.1.smActive", "75"),
        item(3, "gpu.process.1.powerWatts", "400"),
        item(3, "cpu", "3"),
    ]
    .concat();
    let read = Sampled::read_file(&FORMAT, &file(&[bytes(7, &stats)]));
    assert_eq!(read.counts.points, 6);
    for metric in ["gpu.utilization", "gpu.power", "train.custom"] {
        assert!(!read.values(metric).is_empty(), "{metric}");
    }
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

#[test]
fn hugging_face_records_use_the_trainers_global_step() {
    let logged = |count: &str, items: &[(&str, &str)]| {
        let clock = [("_step", count), ("_timestamp", "1.795220480e+09")];
        history(&[&clock, items].concat())
    };
    let run = [
        logged(
            "0",
            &[
                ("train/loss", "2.5"),
                ("train/rewards/format/mean", "0.5"),
                ("train/global_step", "10"),
            ],
        ),
        logged(
            "1",
            &[
                ("eval/squad_loss", "1.5"),
                ("eval/squad_runtime", "4"),
                ("train/global_step", "10"),
            ],
        ),
        logged("2", &[("train/loss", "2.0"), ("train/global_step", "20")]),
        // Values logged once go to the summary, under names of their own.
        bytes(
            3,
            &[item(1, "train_loss", "2.25"), item(1, "train_runtime", "60")].concat(),
        ),
    ];
    let file = file(&run);
    assert_eq!(identify(&file).framework, Some("hf_trainer"));
    let read = Sampled::read_file(&FORMAT, &file);
    assert_eq!(read.values("train.global_step"), [10.0, 20.0]);
    assert_eq!(read.values("train.loss"), [2.5, 2.0]);
    assert_eq!(read.values("train.mean_loss"), [2.25]);
    assert_eq!(read.values("train.elapsed_time"), [60.0]);
    assert_eq!(
        read.attributes("rl.reward_component"),
        ["rl.component=format rl.statistic=mean"]
    );
    assert_eq!(read.attributes("eval.loss"), ["data.name=squad"]);
    assert_eq!(read.values("train.custom"), [0.0; 0]);
}

#[test]
fn the_mean_loss_of_a_summary_is_not_a_step_loss_even_if_only_the_summary_reveals_the_trainer() {
    let logged = history(&[("_step", "0"), ("train/loss", "2.5"), ("train/global_step", "10")]);
    let summary = [
        item(1, "train_loss", "2.25"),
        item(1, "train_samples_per_second", "8"),
        item(1, "total_flos", "1e12"),
    ]
    .concat();
    let read = Sampled::read_file(&FORMAT, &file(&[logged, bytes(3, &summary)]));
    assert_eq!(read.values("train.loss"), [2.5]);
    assert_eq!(read.values("train.mean_loss"), [2.25]);
    assert_eq!(read.values("train.global_step"), [10.0]);
}

#[test]
fn maps_of_older_versions_are_flattened_and_their_step_is_outside_the_items() {
    let nested = r#"{"loss": 1.5, "deep": {"x": 2, "note": "fine"}, "list": [1]}"#;
    let items = item(1, "metrics", nested);
    let record = bytes(2, &[items, bytes(2, &number(1, 7))].concat());
    let quoted = history(&[("_step", "8"), ("grad_norm", "\"NaN\"")]);
    let read = Sampled::read_file(&FORMAT, &file(&[record, quoted]));
    assert_eq!(
        read.attributes("train.custom"),
        ["train.custom.name=metrics.deep.x"]
    );
    assert_eq!(read.values("train.custom"), [2.0]);
    assert_eq!(read.values("train.loss"), [1.5]);
    assert_eq!(read.values("train.global_step"), [7.0, 8.0]);
    assert!(read.values("train.grad_norm")[0].is_nan());
    assert_eq!(read.counts.events, 2, "the note and the list");
}

#[test]
fn environment_and_alerts_of_a_run_are_events() {
    let gpu = [
        bytes(1, b"NVIDIA H100"),
        number(2, 85_899_345_920),
        bytes(5, b"GPU-1"),
    ]
    .concat();
    let environment = [
        bytes(1, b"Linux"),
        bytes(10, b"someone@example.org"),
        number(16, 32),
        bytes(24, &gpu),
        bytes(24, &gpu),
    ]
    .concat();
    let run = [
        bytes(1, b"1c2e8f8a"),
        bytes(3, b"llm"),
        bytes(6, b"sweep"),
        bytes(10, b"fp8"),
        bytes(10, b"moe"),
        number(14, 100),
        number(18, 1),
    ]
    .concat();
    let alert = [bytes(1, b"Loss spike"), bytes(2, b"at step 7")].concat();
    let file = file(&[bytes(17, &run), bytes(26, &environment), bytes(10, &alert)]);
    assert_eq!(identify(&file).project.as_deref(), Some("llm"));
    let mut batches = Vec::new();
    let mut recorder = Recorder::new(Run::default(), |batch| batches.push(batch));
    let mut reader = LogReader::new(&FORMAT, ReadLimits::default());
    reader.push(&file, &mut recorder);
    reader.finish(&mut recorder);
    let (counts, skipped) = recorder.finish();
    // Group, two tags, first step, resumed; the machine and its GPUs; the alert.
    assert_eq!((counts.events, counts.records), (5 + 3 + 1, 3));
    assert!(!skipped.has_losses());
    let text = String::from_utf8_lossy(&batches[0].bytes).into_owned();
    assert!(text.contains("Loss spike: at step 7") && text.contains("NVIDIA H100") && text.contains("Linux"));
    assert!(!text.contains("someone@"), "who ran it is private");
}

#[test]
fn wandb_run_is_identified_by_id_and_name() {
    let run = bytes(
        17,
        &[
            bytes(1, b"1c2e8f8a"),
            bytes(8, b"quick-fox-7"),
            bytes(17, &[8, 100]),
        ]
        .concat(),
    );
    let file = file(&[run, step(0)]);
    let identity = identify(&file);
    assert_eq!(identity.run_name.as_deref(), Some("quick-fox-7"));
    assert_eq!(identity.first_record, b"1c2e8f8a");
    assert_eq!(identity.start, Some(LoggedTime::Utc(UnixNanos(100_000_000_000))));
    assert_eq!(detect(&file), Some("the first bytes of a wandb file"));
}

/// A trainer is detected by a reassembled key, after other keys have been interned.
#[test]
fn detecting_a_trainer_by_a_histogram_keeps_every_value_on_its_metric() {
    let first = history(&[
        ("_step", "1"),
        ("_timestamp", "1.795220480e+09"),
        ("own/a", "1"),
        ("own/b", "2"),
        ("own/c", "3"),
        ("train/loss", "2.5"),
        ("train/norm._type", "\"histogram\""),
        ("train/norm.values", "[1, 2]"),
        ("train/norm.bins", "[0, 1, 2]"),
    ]);
    let second = history(&[("_step", "2"), ("train/norm", "0.5"), ("own/b", "4")]);
    let read = Sampled::read_file(&FORMAT, &file(&[first, second]));
    assert_eq!(read.values("train.loss"), [2.5]);
    assert_eq!(read.values("train.grad_norm"), [0.5]);
    let custom = read
        .attributes("train.custom")
        .into_iter()
        .zip(read.values("train.custom"));
    let custom: Vec<String> = custom.map(|(name, value)| format!("{name} {value}")).collect();
    assert_eq!(
        custom,
        ["own/a 1", "own/b 2", "own/c 3", "own/b 4"].map(|line| format!("train.custom.name={line}"))
    );
}

#[test]
fn keys_beyond_the_limit_are_counted_and_left_out() {
    let records: Vec<Vec<u8>> = (0..=pulsetrain_record::key_cache::MAX_NAMES / 100)
        .map(|record| {
            let keys: Vec<String> = (0..100).map(|key| format!("{record}/{key}")).collect();
            history(&keys.iter().map(|key| (key.as_str(), "1")).collect::<Vec<_>>())
        })
        .collect();
    let (counts, skipped) = read_in_chunks(&FORMAT, &file(&records), 1 << 20);
    let beyond = reasons(&skipped)
        .into_iter()
        .find(|(reason, _)| *reason == SkipReason::TooManyNames);
    let names = records.len() * 100;
    let expected = (names - pulsetrain_record::key_cache::MAX_NAMES) as u64;
    assert_eq!(beyond, Some((SkipReason::TooManyNames, expected)));
    assert!(skipped.has_losses() && counts.records == records.len() as u64);
}
