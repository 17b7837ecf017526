//! Every input format, compressed or not, from one file, from several, and from standard input; complete, truncated and mixed.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use pulsetrain_otlp::{
    frames::{FrameReader, append_binary},
    limits::Limits,
    write::Buffer,
};
use pulsetrain_tests::{Finished, Folder, Items, command, convert, corpus, otlp::gzip};
use serde_json::Value;

/// Returns the items of inputs that must be read completely.
fn items_of(folder: &Folder, inputs: &[&Path]) -> Items {
    let output = folder.path("out.jsonl");
    convert(inputs, &output, &[]).expect_code(0);
    Items::read(&output)
}

/// Converts bytes from standard input; returns the process output and the items.
fn through_stdin(folder: &Folder, bytes: &[u8]) -> (Finished, Items) {
    let output = folder.path("out.jsonl");
    let finished = Finished::with_input(command(["convert", "--json", "-", "-o"]).arg(&output), bytes);
    (finished, Items::read(&output))
}

/// Returns the corpus in each telemetry format, uncompressed: a name and its bytes.
fn forms(folder: &Folder) -> Vec<(&'static str, Vec<u8>)> {
    let lines = fs::read(corpus("otlp/everything.jsonl")).expect("the corpus can be read");
    let mut forms = Vec::new();
    for name in ["all.binpb", "all.pftrace"] {
        let output = folder.path(name);
        convert(
            &[corpus("otlp/everything.jsonl")],
            &output,
            &["--attributes", "full"][..2 * usize::from(name.ends_with("pftrace"))],
        )
        .expect_code(0);
        forms.push((name, fs::read(output).expect("the output can be read")));
    }
    let documents: Vec<Value> = String::from_utf8_lossy(&lines)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is an object"))
        .collect();
    let pretty: Vec<String> = documents.iter().map(|one| format!("{one:#}")).collect();
    let of_protobuf = fs::read(corpus("otlp/message_to_json.json")).expect("the corpus can be read");
    let arrays: Vec<String> = documents
        .iter()
        .map(|document| format!("[{document}]\n"))
        .collect();
    forms.push(("arrays.jsonl", arrays.concat().into_bytes()));
    forms.push(("array.json", Value::from(documents).to_string().into_bytes()));
    let named = serde_json::from_slice(&of_protobuf).expect("the corpus is JSON");
    let original_names = with_original_names(named).to_string();
    forms.push(("original_names.json", original_names.into_bytes()));
    forms.push(("protobuf.json", of_protobuf));
    forms.push(("all.json", pretty.join("\n").into_bytes()));
    forms.push(("all.jsonl", lines));
    forms
}

/// Renames all fields to their names in the proto files, as `MessageToJson` does with `preserving_proto_field_name`.
fn with_original_names(value: Value) -> Value {
    let original_name = |name: &str| -> String {
        let letters = name.chars().map(|letter| match letter {
            'A'..='Z' => format!("_{}", letter.to_ascii_lowercase()),
            _ => letter.to_string(),
        });
        letters.collect()
    };
    match value {
        Value::Array(values) => values.into_iter().map(with_original_names).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (original_name(&name), with_original_names(value)))
            .collect(),
        scalar => scalar,
    }
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("memory can be written")
}

/// A suffix of the file name, and the compression.
type Compressed = (&'static str, fn(&[u8]) -> Vec<u8>);
const COMPRESSIONS: [Compressed; 3] = [("", <[u8]>::to_vec), (".gz", gzip), (".zst", zstd)];

#[test]
fn every_otlp_encoding_is_read_compressed_or_plain_from_file_or_stdin() {
    let folder = Folder::new();
    let expected = items_of(&folder, &[&corpus("otlp/everything.jsonl")]);
    for (name, bytes) in forms(&folder) {
        for (ending, compress) in COMPRESSIONS {
            let compressed = compress(&bytes);
            let input = folder.file(&format!("in-{name}{ending}"), &compressed);
            items_of(&folder, &[&input]).assert_same(&expected);
            let (finished, items) = through_stdin(&folder, &compressed);
            let summary = finished.expect_code(0).summary();
            assert_eq!(summary["inputs"][0]["lost"], 0, "{name}{ending}: {summary}");
            items.assert_same(&expected);
            // The name has no known suffix, and needs none.
            let input = folder.file("telemetry", &compressed);
            items_of(&folder, &[&input]).assert_same(&expected);
        }
    }
}

#[test]
fn dash_writes_otlp_json_lines_to_stdout() {
    let folder = Folder::new();
    let input = corpus("otlp/everything.jsonl");
    let finished = Finished::run(command(["convert", "--json", "-o", "-"]).arg(&input)).expect_code(0);
    Items::parse(&finished.stdout).assert_same(&items_of(&folder, &[&input]));
    assert_eq!(finished.summary()["bytes"], finished.stdout.len());
}

#[test]
fn several_files_of_different_encodings_are_read_as_one_input() {
    let folder = Folder::new();
    let mut files = Vec::new();
    for name in ["python_sdk.binpb", "rust_sdk.binpb", "collector.jsonl"] {
        let bytes = fs::read(corpus(&format!("otlp/{name}"))).unwrap();
        let (ending, compress) = COMPRESSIONS[files.len()];
        files.push(folder.file(&format!("{name}{ending}"), compress(&bytes)));
    }
    let all: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let together = items_of(&folder, &all);
    let mut apart = String::new();
    for file in all {
        items_of(&folder, &[file]);
        apart.push_str(&fs::read_to_string(folder.path("out.jsonl")).unwrap());
    }
    together.assert_same(&Items::parse(&apart));
}

#[test]
fn duplicate_input_file_is_noted() {
    let folder = Folder::new();
    let input = corpus("otlp/collector.jsonl");
    let link = folder.path("link.jsonl");
    std::os::unix::fs::symlink(&input, &link).expect("a link can be made");
    let output = folder.path("out.pftrace");
    let notes = |inputs: &[&Path]| {
        let summary = convert(inputs, &output, &[]).expect_code(0).summary();
        [0, 1].map(|place| summary["inputs"][place]["notes"].to_string())
    };
    let [first, second] = notes(&[&input, &link]);
    assert!(!first.contains("was already read"), "{first}");
    assert!(second.contains("was already read"), "{second}");
    let [_, second] = notes(&[&input, &corpus("otlp/everything.jsonl")]);
    assert!(!second.contains("was already read"), "{second}");
}

/// Returns the items without the fields that may follow the items in the text.
fn without_what_follows(items: &Items) -> BTreeSet<String> {
    let without = |item: String| {
        let mut item: Value = serde_json::from_str(&item).expect("an item is an object");
        for behind in ["scope", "scopeSchema", "resourceSchema"] {
            item[behind] = Value::Null;
        }
        item.to_string()
    };
    items.distinct().into_iter().map(without).collect()
}

#[test]
fn truncated_input_yields_complete_messages_and_reports_the_offset() {
    let folder = Folder::new();
    let expected = items_of(&folder, &[&corpus("otlp/everything.jsonl")]);
    for (name, bytes) in forms(&folder) {
        for (ending, compress) in COMPRESSIONS {
            // In a compressed file, the last bytes are a checksum of complete data, and an incomplete block is lost.
            let cut = match ending {
                "" => bytes[..bytes.len() - 9].to_vec(),
                _ => {
                    let complete = [compress(&bytes), compress(&bytes)].concat();
                    complete[..complete.len() * 9 / 10].to_vec()
                }
            };
            let input = folder.file(&format!("cut-{name}{ending}"), &cut);
            let output = folder.path("out.jsonl");
            let summary = convert(&[&input], &output, &[]).expect_code(1).summary();
            let problems = summary["inputs"][0]["problems"].to_string();
            assert!(
                problems.contains("byte ") || problems.contains("line "),
                "{name}{ending}: {problems}"
            );
            let read = Items::read(&output);
            assert!(!read.is_empty(), "{name}{ending}: {problems}");
            if name != "all.pftrace" {
                let (read, known) = (without_what_follows(&read), without_what_follows(&expected));
                let unknown: Vec<_> = read.difference(&known).collect();
                assert_eq!(unknown, Vec::<&String>::new(), "{name}{ending}");
            }
        }
    }
}

#[test]
fn truncated_json_document_yields_complete_spans_and_reports_the_offset() {
    let folder = Folder::new();
    let text = fs::read_to_string(corpus("backends/sent.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let sent = Items::parse(&document.to_string());
    for layout in [document.to_string(), format!("{document:#}")] {
        // Every span is complete without the closing brackets.
        let last = layout.trim_end_matches(|end: char| end.is_whitespace() || "]}".contains(end));
        let brackets = layout.len() - last.len();
        for (cut, all) in [(layout.len() - 1, true), (layout.len() - brackets - 1, false)] {
            for (ending, compress) in [COMPRESSIONS[0], COMPRESSIONS[2]] {
                let input = folder.file(&format!("cut.json{ending}"), compress(&layout.as_bytes()[..cut]));
                let output = folder.path("out.jsonl");
                let finished = convert(&[&input], &output, &[]).expect_code(1);
                finished.expect_words(&["in the middle of a message", "before byte "]);
                let read = Items::read(&output);
                if all {
                    read.assert_same(&sent);
                } else {
                    assert_eq!(read.len(), sent.len() - 1, "{ending}");
                }
            }
        }
    }
}

#[test]
fn truncated_backend_response_yields_its_complete_spans() {
    let folder = Folder::new();
    for name in [
        "tempo_api_traces.json",
        "tempo_api_v2_traces.json",
        "jaeger_api_v3_traces.json",
        "jaeger_api_traces.json",
    ] {
        let bytes = fs::read(corpus(&format!("backends/{name}"))).unwrap();
        let complete = items_of(&folder, &[&corpus(&format!("backends/{name}"))]).len();
        for (ending, compress) in COMPRESSIONS {
            let cut = compress(&bytes[..bytes.len() * 8 / 10]);
            let input = folder.file(&format!("{name}{ending}"), &cut);
            let output = folder.path("out.jsonl");
            let summary = convert(&[&input], &output, &[]).expect_code(1).summary();
            let problems = summary["inputs"][0]["problems"].to_string();
            assert!(problems.contains("the data before byte "), "{problems}");
            let read = Items::read(&output).len();
            assert!(
                (1..complete).contains(&read),
                "{name}{ending}: {read} of {complete}"
            );
        }
    }
}

#[test]
fn invalid_input_is_reported_and_does_not_affect_other_inputs() {
    let folder = Folder::new();
    let good = corpus("otlp/web_service.jsonl");
    let expected = items_of(&folder, &[&good]);
    for bad in [
        &b"no telemetry"[..],
        b"",
        b"\x1f\x8b\x08garbage",
        b"{\"data\":7}",
        b"\x0a\xff",
    ] {
        let input = folder.file("bad", bad);
        let output = folder.path("out.jsonl");
        let finished = convert(&[input.as_path(), &good], &output, &[]);
        let summary = finished.summary();
        let lost = summary["inputs"][0]["lost"].as_u64().unwrap();
        assert_eq!(finished.code, Some(i32::from(!bad.is_empty())), "{summary}");
        assert_eq!(lost > 0, !bad.is_empty(), "{summary}");
        Items::read(&output).assert_same(&expected);
    }
}

/// Returns the messages of the corpus: one of each signal.
fn messages() -> [Vec<u8>; 3] {
    let lines = fs::read(corpus("otlp/everything.jsonl")).expect("the corpus can be read");
    let mut messages = [Vec::new(), Vec::new(), Vec::new()];
    for frame in FrameReader::new(lines.as_slice(), Limits::default()) {
        let frame = frame.expect("the corpus is OTLP");
        messages[frame.signal as usize].extend(frame.bytes);
    }
    messages
}

#[test]
fn saved_otlp_message_is_read_regardless_of_its_file_extension() {
    let folder = Folder::new();
    let back = folder.path("back.jsonl");
    convert(&[corpus("otlp/everything.jsonl")], &back, &[]).expect_code(0);
    let expected = Items::read(&back);
    for ending in ["binpb", "pb", "bin", "otlp", "pftrace", "pb.zst"] {
        let files: Vec<PathBuf> = messages()
            .iter()
            .enumerate()
            .map(|(number, message)| match ending.ends_with("zst") {
                true => folder.file(&format!("{number}.{ending}"), zstd(message)),
                false => folder.file(&format!("{number}.{ending}"), message),
            })
            .collect();
        // The name does not decide about length-delimited messages either.
        let mut framed = Vec::new();
        for message in messages() {
            append_binary(&message, &mut framed).expect("a message has a length");
        }
        let framed = if ending.ends_with("zst") {
            zstd(&framed)
        } else {
            framed
        };
        items_of(&folder, &[&folder.file(&format!("framed.{ending}"), framed)]).assert_same(&expected);
        let summary = convert(&files, &back, &[]).expect_code(0).summary();
        Items::read(&back).assert_same(&expected);
        let counted = ["spans", "points", "logs"].map(|name| summary["items"][name].as_u64().unwrap());
        assert_eq!(counted.iter().sum::<u64>(), expected.len() as u64, "{summary}");
    }
}

/// Returns one resource with `spans` spans of 1 MiB each.
fn large(spans: usize) -> Vec<u8> {
    let mut span = Buffer::default();
    span.delimited(1, &[7; 16]);
    span.delimited(2, &[9; 8]);
    span.text(5, &"n".repeat(1 << 20));
    span.fixed64(7, 1_700_000_000_000_000_000);
    span.fixed64(8, 1_700_000_000_000_000_001);
    let mut scope = Buffer::default();
    (0..spans).for_each(|_| scope.delimited(2, span.as_slice()));
    [2, 1].into_iter().fold(scope.into_vec(), |inner, number| {
        let mut outer = Buffer::default();
        outer.delimited(number, &inner);
        outer.into_vec()
    })
}

#[test]
fn message_above_the_size_limit_is_read_in_parts() {
    let folder = Folder::new();
    let back = folder.path("back.binpb");
    let message = large(70);
    let mut framed = Vec::new();
    append_binary(&message, &mut framed).expect("a message has a length");
    append_binary(&large(1), &mut framed).expect("a message has a length");
    for (file, spans) in [("raw.binpb", 70), ("framed.binpb", 71)] {
        let bytes = if spans == 70 { &message } else { &framed };
        let input = folder.file(file, bytes);
        let summary = convert(&[input], &back, &[]).expect_code(0).summary();
        assert_eq!(summary["items"]["spans"], spans, "{file}: {summary}");
    }
    let frames = FrameReader::new(
        fs::File::open(&back).expect("the output is there"),
        Limits::default(),
    );
    let spans = frames.map(|frame| frame.expect("the output is OTLP").counts.items);
    assert_eq!(spans.sum::<u64>(), 71);
}

#[test]
fn unknown_json_fields_are_counted_and_the_first_is_named() {
    let folder = Folder::new();
    // Before OTLP 0.15, the scopes of spans had another name.
    let span = r#"{"traceId":"00000000000000000000000000000001","spanId":"0000000000000001","name":"a"}"#;
    let text = format!(
        "{{\"resourceSpans\":[{{\"scopeSpans\":[{{\"spans\":[{span}]}}]}}]}}\n\
         {{\"resourceSpans\":[{{\"instrumentationLibrarySpans\":[{{\"spans\":[{span}]}}],\"more\":1}}]}}\n"
    );
    let second = text.find('\n').expect("there are two lines") + 1;
    let input = folder.file("old.jsonl", text);
    let output = folder.path("out.jsonl");
    let summary = convert(&[input], &output, &[]).expect_code(1).summary();
    let problems = summary["inputs"][0]["problems"].to_string();
    let expected = format!(
        "2 fields that OTLP does not have are left out; the first is \\\"instrumentationLibrarySpans\\\", in the object at \
         byte {second}"
    );
    assert!(problems.contains(&expected), "{problems}");
    assert_eq!(summary["inputs"][0]["lost"], 2, "{summary}");
    assert_eq!(summary["items"]["spans"], 1, "{summary}");
}

#[test]
fn file_can_be_cut_only_into_a_trace() {
    let folder = Folder::new();
    let metrics = PathBuf::from(format!("openmetrics:{}", folder.path("cut.txt").display()));
    for output in [folder.path("cut.jsonl"), folder.path("cut.binpb"), metrics] {
        let window = ["--window", "2030-01-01T00:00:00Z.."];
        let finished = convert(&[corpus("otlp/everything.jsonl")], &output, &window).expect_code(2);
        finished.expect_words(&["--window is for Perfetto traces only"]);
    }
    let files = fs::read_dir(folder.root()).expect("the folder can be read");
    assert_eq!(files.count(), 0);
}

#[test]
fn input_without_telemetry_fails_and_keeps_the_output_file() {
    let folder = Folder::new();
    // One packet with scheduler events, as `ftrace_events`.
    let ftrace = [0x0a, 6, 0x0a, 4, 0x08, 1, 0x12, 0];
    let no_spans = br#"{"resourceSpans":[]}"#;
    for (name, bytes, words) in [
        ("sched.pftrace", &ftrace[..], "scheduling (ftrace)"),
        ("sched", &ftrace[..], "scheduling (ftrace)"),
        ("empty.jsonl", &no_spans[..], "no spans, metrics or log records"),
        ("nothing.jsonl", b"", "no spans, metrics or log records"),
    ] {
        let input = folder.file(name, bytes);
        let output = folder.file("out.jsonl", b"what was there");
        let finished = convert(&[input], &output, &[]).expect_code(1);
        finished.expect_words(&[words]);
        assert_eq!(
            fs::read(&output).expect("the output is there"),
            b"what was there",
            "{name}"
        );
    }
}
