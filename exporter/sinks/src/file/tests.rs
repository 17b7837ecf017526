use std::{fs::File, io::Read};

use pulsetrain_otlp::Signal;

use super::*;

fn batch(bytes: impl Into<Vec<u8>>) -> Batch {
    Batch::new(Signal::Metrics, 1, bytes.into())
}

async fn deliver(sink: &mut FileSink, bytes: &[u8]) -> Delivery {
    sink.deliver(&batch(bytes)).await
}

fn refusal(delivery: Delivery) -> String {
    match delivery {
        Delivery::Refused(problem) => problem.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn extension_names_the_format_and_others_are_rejected() {
    assert_eq!(
        FileFormat::from_path(Path::new("a.jsonl")).unwrap(),
        FileFormat::JsonLines
    );
    assert_eq!(
        FileFormat::from_path(Path::new("b.c/a.binpb")).unwrap(),
        FileFormat::LengthPrefixed
    );
    for path in ["a.json", "a", "jsonl", "a.binpb.gz"] {
        let message = FileFormat::from_path(Path::new(path)).unwrap_err().to_string();
        assert!(
            message.contains(".jsonl") && message.contains(".binpb"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn binpb_holds_each_batch_after_its_length_in_four_bytes_big_endian() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.binpb");
    let mut sink = FileSink::create(&path).unwrap();
    for bytes in [&b"\x0a\x01x"[..], b"", &[7; 300]] {
        assert_eq!(deliver(&mut sink, bytes).await, Delivery::Delivered);
    }
    assert_eq!(sink.finish().await, Ok(()));
    let expected = [
        &[0, 0, 0, 3][..],
        b"\x0a\x01x",
        &[0, 0, 0, 0],
        &[0, 0, 1, 44],
        &[7; 300],
    ]
    .concat();
    assert_eq!(std::fs::read(&path).unwrap(), expected);
}

#[tokio::test]
async fn jsonl_holds_each_batch_as_one_json_object_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    let mut sink = FileSink::create(&path).unwrap();
    // One resource whose schema URL is a line break: the line stays one line.
    for (signal, bytes) in [
        (Signal::Traces, &b"\x0a\x03\x1a\x01\n"[..]),
        (Signal::Logs, b"\x0a\x02\x12\x00"),
    ] {
        let batch = Batch::new(signal, 1, bytes);
        assert_eq!(sink.deliver(&batch).await, Delivery::Delivered);
    }
    assert_eq!(sink.finish().await, Ok(()));
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["resourceSpans"][0]["schemaUrl"], "\n");
    assert!(lines[1]["resourceLogs"].is_array());
    assert!(text.ends_with('\n'));
}

#[tokio::test]
async fn invalid_protobuf_batch_is_refused_and_writes_no_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    let mut sink = FileSink::create(&path).unwrap();
    let message = refusal(deliver(&mut sink, b"\x0a\x05").await);
    assert!(
        message.contains("out.jsonl: the batch is not OTLP protobuf"),
        "{message}"
    );
    assert_eq!(deliver(&mut sink, b"").await, Delivery::Delivered);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn created_file_replaces_the_content_of_an_existing_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.binpb");
    std::fs::write(&path, "what was there before").unwrap();
    let mut sink = FileSink::create(&path).unwrap();
    deliver(&mut sink, b"new").await;
    assert_eq!(std::fs::read(&path).unwrap(), b"\0\0\0\x03new");
}

#[tokio::test]
async fn existing_file_is_appended_to_after_its_last_complete_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    std::fs::write(&path, "{\"a\":1}\n{\"b\":").unwrap();
    let mut sink = FileSink::append(&path, &FileConfig::default()).unwrap();
    deliver(&mut sink, b"").await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{}\n");
    let aside = directory.path().join("out.aside-1.jsonl");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "{\"b\":");
    let notice = sink.notice().expect("the user learns it").to_string();
    assert!(
        notice.contains("keeps 8 bytes") && notice.contains("moved 5 bytes"),
        "{notice}"
    );
}

#[tokio::test]
async fn file_locked_by_another_writer_is_rejected_until_it_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.jsonl");
    let mut first = FileSink::create(&path).unwrap();
    deliver(&mut first, b"").await;
    let append = |path: &Path| FileSink::append(path, &FileConfig::default());
    for open in [FileSink::create, append] {
        let error = open(&path).err().expect("the file is in use").to_string();
        for words in ["out.jsonl", "another program writes to it", "name another file"] {
            assert!(error.contains(words), "{words} is not in: {error}");
        }
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
    drop(first);
    assert!(FileSink::append(&path, &FileConfig::default()).is_ok());
}

#[tokio::test]
async fn file_emptied_by_copytruncate_contains_only_complete_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.binpb");
    let mut sink = FileSink::create(&path).unwrap();
    deliver(&mut sink, b"old").await;
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(0)
        .unwrap();
    deliver(&mut sink, b"new").await;
    deliver(&mut sink, b"end").await;
    assert_eq!(std::fs::read(&path).unwrap(), b"\0\0\0\x03new\0\0\0\x03end");
}

#[test]
fn unopenable_file_is_an_error_with_its_path_and_advice() {
    let directory = tempfile::tempdir().unwrap();
    let error = |name: &str| {
        FileSink::create(&directory.path().join(name))
            .err()
            .unwrap()
            .to_string()
    };
    let message = error("missing/out.jsonl");
    assert!(
        message.contains("missing/out.jsonl") && message.contains("create the directory first"),
        "{message}"
    );
    std::fs::create_dir(directory.path().join("folder.binpb")).unwrap();
    assert!(error("folder.binpb").contains("name a file in it"));
}

#[tokio::test]
async fn full_disk_is_retried_with_counts_and_advice() {
    let file = File::options().write(true).open("/dev/full").unwrap();
    let mut sink = FileSink::new(
        "/dev/full",
        FileFormat::LengthPrefixed,
        Destination::fixed(Output::file(file)),
    );
    let Delivery::Retry { after: None, problem } = deliver(&mut sink, b"x").await else {
        panic!("not to be tried again");
    };
    let message = problem.to_string();
    assert!(
        message.starts_with("file /dev/full: No space left on device"),
        "{message}"
    );
    assert!(
        message.contains("0 complete records") && message.contains("make room on the disk"),
        "{message}"
    );
}

#[tokio::test]
async fn closed_pipe_is_a_permanent_error_with_counts() {
    let (mut reader, writer) = io::pipe().unwrap();
    let file = File::from(std::os::fd::OwnedFd::from(writer));
    let mut sink = FileSink::new(
        "stdout",
        FileFormat::LengthPrefixed,
        Destination::fixed(Output::file(file)),
    );
    assert_eq!(deliver(&mut sink, b"ab").await, Delivery::Delivered);
    let mut read = [0; 6];
    reader.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"\0\0\0\x02ab");
    drop(reader);
    let message = refusal(deliver(&mut sink, b"cd").await);
    assert!(
        message.contains("1 complete records (6 bytes)") && message.contains("make the reader read"),
        "{message}"
    );
    assert_eq!(sink.finish().await, Ok(()));
}
