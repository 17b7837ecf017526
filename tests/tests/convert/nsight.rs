//! Exports of Nsight Systems as an input of `convert`: alone, with the OTLP of the same run, of other versions, and damaged.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use pulsetrain_tests::{
    Finished, Folder, TraceProcessor, command, convert, corpus,
    otlp::{gzip, list, messages, number},
    some_or_return,
};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::convert_memory::measured;

/// The start of the capture, and the nanoseconds of a millisecond.
const START: i64 = 1_700_000_000_000_000_000;
const MS: i64 = 1_000_000;

/// Returns a copy of the export after executing some SQL.
fn changed(folder: &Folder, name: &str, sql: &str) -> PathBuf {
    let bytes = fs::read(corpus("nsight/run.sqlite")).expect("the corpus can be read");
    let path = folder.file(name, bytes);
    let database = Connection::open(&path).expect("the copy can be opened");
    database.execute_batch(sql).expect("the change is valid");
    path
}

fn problems(summary: &Value) -> String {
    summary["inputs"][0]["problems"].to_string()
}

/// Returns every span of OTLP/JSON lines by its id, with its attributes as a map.
fn spans(output: &Path) -> BTreeMap<String, Value> {
    let mut spans = BTreeMap::new();
    let messages = messages(output);
    let resources = messages
        .iter()
        .flat_map(|message| list(&message["resourceSpans"]));
    for scope in resources.flat_map(|resource| list(&resource["scopeSpans"])) {
        for span in list(&scope["spans"]) {
            let mut span = span.clone();
            span["scope"] = scope["scope"]["name"].clone();
            let attributes = list(&span["attributes"]).iter();
            let attributes = attributes.map(|attribute| {
                let key = attribute["key"].as_str().unwrap_or_default().to_owned();
                (key, attribute["value"].clone())
            });
            span["attributes"] = attributes.collect();
            let id = span["spanId"].as_str().unwrap_or_default().to_owned();
            assert!(spans.insert(id, span).is_none(), "ids are unique");
        }
    }
    spans
}

fn named<'s>(spans: &'s BTreeMap<String, Value>, name: &str) -> Vec<&'s Value> {
    let mut named: Vec<_> = spans.values().filter(|span| span["name"] == name).collect();
    named.sort_by_key(|span| number(&span["startTimeUnixNano"]));
    named
}

#[test]
fn kernels_link_to_launches_and_calls_nest_in_nvtx_ranges() {
    let folder = Folder::new();
    let output = folder.path("out.jsonl");
    let finished = convert(&[corpus("nsight/run.sqlite")], &output, &[]).expect_code(0);
    let summary = finished.summary();
    assert_eq!(summary["items"], json!({"spans": 44, "points": 8, "logs": 1}));
    assert_eq!(summary["inputs"][0]["form"], "nsight systems");
    assert_eq!(
        summary["inputs"][0]["notes"],
        json!([
            "1 ranges never end; their spans end with the export",
            "4 rows of COMPOSITE_EVENTS are not converted"
        ])
    );
    let spans = spans(&output);
    let parent =
        |span: &Value| spans[span["parentSpanId"].as_str().expect("it has a parent")]["name"].clone();
    let launch =
        |span: &Value| spans[span["links"][0]["spanId"].as_str().expect("it has a link")]["name"].clone();
    let gemm = named(&spans, "gemm_kernel");
    assert_eq!(gemm.len(), 3);
    assert_eq!(number(&gemm[1]["startTimeUnixNano"]), START + 13 * MS + 50_000);
    assert_eq!(number(&gemm[1]["endTimeUnixNano"]), START + 13 * MS + 950_000);
    assert_eq!(launch(gemm[1]), "cudaLaunchKernel");
    assert_eq!(gemm[1]["parentSpanId"], Value::Null);
    let attributes = &gemm[1]["attributes"];
    assert_eq!(attributes["thread.name"]["stringValue"], "GPU 0 stream 7");
    assert_eq!(attributes["correlation"]["intValue"], "102");
    assert_eq!(
        attributes["demangled name"]["stringValue"],
        "void gemm_kernel<float>(float*, int)"
    );
    let grid = &attributes["grid"]["arrayValue"]["values"];
    assert_eq!(
        grid,
        &json!([{"intValue": "128"}, {"intValue": "2"}, {"intValue": "1"}])
    );
    // Two kernels of one graph launch.
    for name in ["reduce_a", "reduce_b"] {
        assert_eq!(launch(named(&spans, name)[0]), "cudaGraphLaunch");
    }
    let copy = named(&spans, "Memcpy Host-to-Device")[0];
    assert_eq!(copy["attributes"]["bytes"]["intValue"], "1048576");
    assert_eq!(copy["attributes"]["source"]["stringValue"], "Pinned");
    assert_eq!(launch(copy), "cudaMemcpyAsync");
    let forward = named(&spans, "forward")[0];
    assert_eq!(parent(forward), "step 0");
    assert_eq!(forward["attributes"]["category"]["stringValue"], "phase");
    assert_eq!(forward["attributes"]["thread.id"]["intValue"], "4242");
    assert_eq!(
        forward["attributes"]["thread.name"]["stringValue"],
        "pt_main_thread"
    );
    assert_eq!(parent(named(&spans, "cudaLaunchKernel")[0]), "forward");
    let reduce = named(&spans, "ncclAllReduce")[0];
    assert_eq!(
        (&reduce["scope"], &parent(reduce)),
        (&json!("NCCL"), &json!("step 0"))
    );
    // A mark becomes an event of the innermost range.
    assert_eq!(reduce["events"][0]["name"], "grad norm clipped");
    assert_eq!(
        named(&spans, "step 2")[0]["attributes"]["payload"]["intValue"],
        "2"
    );
    let query = named(&spans, "cudaEventQuery")[0];
    assert_eq!(query["attributes"]["return value"]["intValue"], "600");
    // A range that is never popped lasts until the end; the ranges inside it are its children.
    let open = named(&spans, "never popped")[0];
    assert_eq!(number(&open["endTimeUnixNano"]), START + 38 * MS);
    assert_eq!(parent(named(&spans, "poll")[0]), "never popped");
    let request = &named(&spans, "request a")[0]["attributes"];
    assert_eq!(request["start thread"]["intValue"], "4250");
    assert_eq!(request["end thread"]["intValue"], "4242");
    let text = fs::read_to_string(&output).expect("the output can be read");
    for part in [
        r#""key":"service.name","value":{"stringValue":"python3.12"}"#,
        r#""key":"host.name","value":{"stringValue":"node-1"}"#,
        r#""key":"train.rank","value":{"intValue":"3"}"#,
        r#""name":"SMs Active","unit":"%""#,
        r#""eventName":"outside""#,
    ] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("secret"), "environment variables are not read");
}

#[test]
fn nsight_export_is_merged_with_the_otlp_and_profile_of_its_run() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let inputs = [
        "nsight/run.sqlite",
        "nsight/run.otlp.jsonl",
        "kineto/run.pt.trace.json.gz",
    ]
    .map(corpus);
    let both = folder.path("both.pftrace");
    convert(&inputs, &both, &[]).expect_code(0);
    let [slices, arrows, counters, profile] = judge.query(
        &both,
        [
            "select s.name, s.ts, s.dur, s.depth, t.name as row, p.name as process from slice s
             join process_track t on t.id = s.track_id join process p using (upid) where s.dur > 0",
            "select f.name as source, t.name as target, f.ts <= t.ts as forward from flow
             join slice f on f.id = slice_out join slice t on t.id = slice_in",
            "select t.name, c.ts, c.value from counter c join counter_track t on t.id = c.track_id order by c.ts",
            "select count() as operators from slice where category = 'cpu_op'",
        ],
    );
    let find = |name: &str, step: i64| {
        let mut found: Vec<_> = slices.iter().filter(|slice| slice["name"] == name).collect();
        found.sort_by_key(|slice| number(&slice["ts"]));
        found
            .get(step as usize)
            .copied()
            .unwrap_or_else(|| panic!("{name}: {slices:#?}"))
    };
    for step in 0..3 {
        let (own, otlp) = (find(&format!("step {step}"), 0), find("train.step", step));
        let begin = number(&own["ts"]);
        assert_eq!(begin, START + (10 * step + 1) * MS);
        // The step of the trainer contains the range of the profiler on the same time axis.
        assert_eq!(begin - number(&otlp["ts"]), 10_000);
        assert_eq!(number(&otlp["dur"]) - number(&own["dur"]), 20_000);
        let kernel = find("gemm_kernel", step);
        assert_eq!(number(&kernel["ts"]), START + (10 * step + 3) * MS + 50_000);
        assert_eq!(number(&kernel["dur"]), 900_000);
        assert_eq!(kernel["row"], "thread GPU 0 stream 7");
        assert_eq!(kernel["process"], "rank 3 python3.12");
        assert_eq!(otlp["process"], "trainer");
    }
    for (name, depth) in [
        ("step 0", 0),
        ("forward", 1),
        ("cudaLaunchKernel", 2),
        ("gemm_kernel", 0),
    ] {
        assert_eq!(find(name, 0)["depth"], depth, "{name}");
    }
    // Overlapping kernels of a graph are on two rows, and neither is a child of the other.
    for name in ["reduce_a", "reduce_b"] {
        assert_eq!(find(name, 0)["depth"], 0);
    }
    let count = |source: &str, target: &str| {
        let is = |arrow: &&Value| arrow["source"] == source && arrow["target"] == target;
        arrows.iter().filter(is).count()
    };
    for (source, target) in [
        ("cudaLaunchKernel", "gemm_kernel"),
        ("cudaMemcpyAsync", "Memcpy Host-to-Device"),
        ("cudaGraphLaunch", "reduce_a"),
        ("cudaGraphLaunch", "reduce_b"),
        ("cudaStreamSynchronize", "Stream sync"),
    ] {
        assert_eq!(count(source, target), 3, "{source} to {target}: {arrows:#?}");
    }
    assert!(arrows.iter().all(|arrow| arrow["forward"] == 1), "{arrows:#?}");
    let active: Vec<_> = counters
        .iter()
        .filter(|row| row["name"] == "SMs Active")
        .collect();
    assert_eq!(active.len(), 4, "{counters:#?}");
    assert_eq!(number(&active[3]["ts"]), START + 30 * MS);
    assert_eq!(active[3]["value"], 60);
    assert!(number(&profile[0]["operators"]) > 100, "{profile:?}");
}

#[test]
fn nsight_export_with_missing_tables_is_converted_partially() {
    let folder = Folder::new();
    let old = changed(
        &folder,
        "old.sqlite",
        "DROP TABLE TARGET_INFO_SESSION_START_TIME; DROP TABLE PROCESSES; DROP TABLE ThreadNames; DROP TABLE ENUM_CUDA_MEMCPY_OPER;
         DROP TABLE MPI_RANKS; DROP TABLE TARGET_INFO_GPU_METRICS; ALTER TABLE NVTX_EVENTS DROP COLUMN textId;
         ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid; ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN gridZ;",
    );
    let output = folder.path("out.jsonl");
    let undated = convert(&[&old], &output, &[]).expect_code(1).summary();
    assert!(problems(&undated).contains("pass --start-time"), "{undated}");
    convert(&[&old], &output, &["--start-time", "2023-11-14T22:13:20Z"]).expect_code(0);
    let spans = spans(&output);
    assert_eq!(spans.len(), 44);
    let gemm = named(&spans, "gemm_kernel")[0];
    assert_eq!(number(&gemm["startTimeUnixNano"]), START + 3 * MS + 50_000);
    assert_eq!(gemm["attributes"]["grid"], Value::Null);
    // All calls belong to one process, so the kernels do too.
    let launch = gemm["links"][0]["spanId"].as_str().expect("it has a link");
    assert_eq!(spans[launch]["name"], "cudaLaunchKernel");
    assert_eq!(named(&spans, "Memcpy 1").len(), 3);
    let text = fs::read_to_string(&output).expect("the output can be read");
    assert!(
        text.contains("process 4242") && text.contains("GPU metric 1"),
        "{text}"
    );
}

#[test]
fn gpu_work_of_an_unknown_process_is_attributed_to_its_device() {
    let folder = Folder::new();
    let path = changed(
        &folder,
        "two.sqlite",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid;
         UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = globalTid + 0x1000000 WHERE correlationId > 100;",
    );
    let output = folder.path("out.jsonl");
    let summary = convert(&[&path], &output, &[]).expect_code(0).summary();
    let notes = summary["inputs"][0]["notes"].to_string();
    assert!(notes.contains("10 rows of GPU work have no process"), "{notes}");
    assert_eq!(named(&spans(&output), "gemm_kernel")[0]["links"], Value::Null);
}

#[test]
fn rows_without_a_time_and_tables_of_odd_types_are_reported() {
    let folder = Folder::new();
    let path = changed(
        &folder,
        "odd.sqlite",
        "DROP TABLE OSRT_API; CREATE TABLE OSRT_API (start, end, globalTid, nameId);
         INSERT INTO OSRT_API VALUES (NULL, 5, NULL, 1), ('soon', 'late', x'00', 'none'), (7, 3, NULL, 999);
         CREATE VIEW CUBLAS_EVENTS AS SELECT * FROM OSRT_API;",
    );
    let output = folder.path("out.jsonl");
    let summary = convert(&[&path], &output, &[]).expect_code(1).summary();
    assert!(
        problems(&summary).contains("2 rows of OSRT_API have no start"),
        "{summary}"
    );
    assert_eq!(named(&spans(&output), "system call").len(), 1);
}

#[test]
fn nsight_export_is_read_compressed_and_from_stdin() {
    let folder = Folder::new();
    let bytes = fs::read(corpus("nsight/run.sqlite")).expect("the corpus can be read");
    let expected = folder.path("expected.jsonl");
    let plain = folder.file("run.sqlite", &bytes);
    convert(&[&plain], &expected, &[]).expect_code(0);
    let compressed = folder.file("run.sqlite.gz", gzip(&bytes));
    let output = folder.path("out.jsonl");
    convert(
        &[compressed],
        &output,
        &["--temporary-folder", &folder.root().display().to_string()],
    )
    .expect_code(0);
    assert_eq!(spans(&output).len(), spans(&expected).len());
    let input = fs::File::open(&plain).expect("the copy can be opened");
    Finished::run(command(["convert", "-", "-o"]).arg(&output).stdin(input)).expect_code(0);
    assert_eq!(spans(&output).len(), spans(&expected).len());
    let left: Vec<_> = fs::read_dir(folder.root())
        .expect("the folder can be read")
        .filter_map(|entry| Some(entry.ok()?.file_name().display().to_string()))
        .collect();
    assert_eq!(
        left.len(),
        4,
        "no temporary file and no journal is left: {left:?}"
    );
}

#[test]
fn unusable_nsight_inputs_are_reported_with_the_fix() {
    let folder = Folder::new();
    let output = folder.path("out.jsonl");
    let other = folder.path("other.sqlite");
    Connection::open(&other)
        .and_then(|database| database.execute_batch("CREATE TABLE users (id INTEGER)"))
        .expect("a database can be written");
    let scheduling = folder.path("scheduling.sqlite");
    Connection::open(&scheduling)
        .and_then(|database| {
            database.execute_batch(
                "CREATE TABLE StringIds (id INTEGER, value TEXT); CREATE TABLE SCHED_EVENTS (start INTEGER, cpu INTEGER);
                 INSERT INTO SCHED_EVENTS VALUES (1, 2);",
            )
        })
        .expect("a database can be written");
    let report = folder.file("run.nsys-rep", b"\0\x01report");
    let bytes = fs::read(corpus("nsight/run.sqlite")).expect("the corpus can be read");
    let head = folder.file("head.sqlite", &bytes[..100]);
    for (input, expected) in [
        (
            &other,
            "not an export of Nsight Systems: it has no table `StringIds`",
        ),
        (
            &scheduling,
            "has no table that is converted, only SCHED_EVENTS; profile with",
        ),
        (&report, "run `nsys export --type sqlite"),
        (&head, "cannot read the SQLite database"),
    ] {
        let summary = convert(&[input], &output, &[]).expect_code(1).summary();
        assert!(problems(&summary).contains(expected), "{summary}");
        assert!(!output.exists(), "nothing is written");
    }
    // The first page of one table is damaged.
    let (page, size) = Connection::open(corpus("nsight/run.sqlite"))
        .and_then(|database| {
            let query =
                "SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name = 'NVTX_EVENTS'";
            database.query_row(query, [], |row| {
                Ok((row.get::<_, u32>(0)? as usize, row.get::<_, u32>(1)? as usize))
            })
        })
        .expect("the table is there");
    let mut damaged = bytes.clone();
    damaged[(page - 1) * size..page * size].fill(0xff);
    let damaged = folder.file("damaged.sqlite", damaged);
    let summary = convert(&[&damaged], &output, &[]).expect_code(1).summary();
    assert!(
        problems(&summary).contains("cannot be read to its end"),
        "{summary}"
    );
    // Another program has not yet written its changes to the database.
    let unfinished = folder.file("unfinished.sqlite", &bytes);
    folder.file("unfinished.sqlite-wal", b"frames");
    let summary = convert(&[&unfinished], &output, &[]).expect_code(1).summary();
    assert!(
        problems(&summary).contains("wait until `nsys export` ends"),
        "{summary}"
    );
}

#[test]
fn nsight_export_larger_than_memory_is_converted_within_the_limit() {
    let folder = Folder::new();
    let large = changed(
        &folder,
        "large.sqlite",
        "PRAGMA journal_mode = OFF; BEGIN;
         CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59999) SELECT i FROM n;
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 1000000000 + i * 10000, 1000005000 + i * 10000, 0, globalTid, 1000 + i, nameId, 0, NULL
           FROM numbers, (SELECT globalTid, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE correlationId = 2);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName,
             shortName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory,
             localMemoryPerThread, localMemoryTotal, gridId)
           SELECT 1000006000 + i * 10000, 1000014000 + i * 10000, 0, 1, 7, 1000 + i, globalPid, demangledName, shortName, 1, 2, 3, 4, 5, 6, 7,
             8, 9, 0, 0, 1 FROM numbers, (SELECT globalPid, demangledName, shortName FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId = 2);
         COMMIT;",
    );
    let output = folder.path("large.jsonl");
    let (finished, peak) = measured(&large, &output, &["--memory", "4MiB"]);
    let summary = finished.expect_code(0).summary();
    assert_eq!(summary["items"]["spans"], 120_044);
    let spilled = summary["inputs"][0]["spilled_bytes"].as_u64().unwrap_or_default();
    assert!(spilled > 16 << 20, "{summary}");
    assert!((1..48 << 10).contains(&peak), "{peak} KiB: {summary}");
    let spans = spans(&output);
    let kernels = named(&spans, "gemm_kernel");
    assert_eq!(kernels.len(), 60_003);
    let last = kernels[60_002];
    let launch = last["links"][0]["spanId"].as_str().expect("it has a link");
    assert_eq!(spans[launch]["attributes"]["correlation"]["intValue"], "60999");
}

#[test]
fn many_names_threads_and_open_ranges_stay_within_the_memory_limit() {
    let folder = Folder::new();
    let hostile = changed(
        &folder,
        "hostile.sqlite",
        "PRAGMA journal_mode = OFF; BEGIN;
         CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) SELECT i FROM n;
         INSERT INTO StringIds SELECT 1000000 + i, hex(zeroblob(60)) || i FROM numbers;
         INSERT INTO ThreadNames (globalTid, priority, nameId) SELECT 16777216 + i, 0, 1000000 + i FROM numbers;
         INSERT INTO NVTX_EVENTS (start, eventType, globalTid, text, domainId, category)
           SELECT 0, 33, 16777216, hex(zeroblob(60)) || i, i, 1 FROM numbers;
         INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid, text)
           SELECT 1000000000 + i, 1000000100 + i, 59, 16777216 + i, 'a' FROM numbers;
         INSERT INTO NVTX_EVENTS (start, eventType, globalTid, text) SELECT 1000000000 + i, 59, 16777216, 'open' FROM numbers;
         COMMIT;",
    );
    let output = folder.path("hostile.jsonl");
    let (finished, peak) = measured(&hostile, &output, &["--memory", "4MiB"]);
    let summary = finished.expect_code(1).summary();
    let (added, problems) = (200_000, problems(&summary));
    assert!(
        summary["items"]["spans"].as_u64().unwrap_or_default() > added,
        "{summary}"
    );
    for expected in [
        "entries of processes, ranks and threads are not used: together they take more than 2 MiB",
        "entries of NVTX domains and categories are not used",
        "on the row `further rows`: the export has too many threads and streams",
    ] {
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
    let notes = summary["inputs"][0]["notes"].to_string();
    assert!(
        notes.contains("ranges begin while too many others are open"),
        "{notes}"
    );
    assert!((1..68 << 10).contains(&peak), "{peak} KiB: {summary}");
}
