//! `pulsetrain show`: finished runs as text, as one HTML file, and served.

use std::{
    fs,
    io::Read,
    net::{Ipv4Addr, TcpListener},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use pulsetrain_tests::{Finished, Folder, Process, command, corpus, free_port, http::is_open, wait_until};
use serde_json::Value;

use crate::page::world::{HOSTILE, get, hostile_run, run_of};

fn show(arguments: &[&str]) -> Finished {
    Finished::run(command(["show"]).args(arguments))
}

/// Returns the data that is embedded in an HTML file.
fn embedded(html: &str) -> Value {
    let begin = html.find("id=\"data\">").expect("a place for data") + "id=\"data\">".len();
    let data = &html[begin..begin + html[begin..].find('<').expect("the end of the data")];
    let bytes = STANDARD.decode(data).expect("the data is base64");
    let mut text = String::new();
    GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .expect("the data is compressed text");
    serde_json::from_str(&text).expect("the data is JSON")
}

#[test]
fn every_reading_option_of_import_is_an_option_of_show() {
    let help = |name: &str| {
        Finished::run(&mut command([name, "--help"]))
            .expect_code(0)
            .stdout
    };
    let options = [
        "--format",
        "--mapping",
        "--run-id",
        "--run-name",
        "--rank",
        "--rank-pattern",
        "--start-time",
        "--timezone",
    ];
    for (name, page) in ["import", "show"].map(|name| (name, help(name))) {
        for option in options {
            assert!(page.contains(&format!("{option} <")), "{name} {option}: {page}");
        }
    }
}

#[test]
fn show_reads_a_log_by_a_mapping_under_the_names_of_the_user() {
    let folder = Folder::new();
    let log = folder.file("own.log", "lap=1 warp=2.5\nlap=2 warp=2.25\nlap=3 warp=2\n");
    let log = log.display().to_string();
    let finished = show(&[&log, "--text"]);
    assert_eq!(finished.code, Some(1));
    for part in ["found the keys lap, warp", "--suggest-mapping"] {
        assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
    }
    let mapping = folder.file(
        "mapping.yaml",
        "format: keyvalue\nstep: lap\nvalues: [{key: warp, metric: train.loss}]\n",
    );
    let html = folder.path("out.html");
    show(&[
        &log,
        "--mapping",
        &mapping.display().to_string(),
        "--run-name",
        "voyage",
        "--run-id",
        "v-7",
        "--rank",
        "3",
        "--start-time",
        "2026-11-20T10:00:00Z",
        "--timezone",
        "UTC",
        "--html",
        &html.display().to_string(),
    ])
    .expect_code(0);
    let data = embedded(&fs::read_to_string(&html).expect("the page can be read")).to_string();
    for part in ["voyage", "v-7", "train.loss"] {
        assert!(data.contains(part), "{part}: {data}");
    }
}

#[test]
fn every_corpus_folder_is_shown_or_rejected_with_a_reason() {
    let folders = fs::read_dir(corpus(""))
        .expect("the corpus can be listed")
        .flatten();
    let mut shown = 0;
    for folder in folders.filter(|entry| entry.path().is_dir()) {
        let (path, folder) = (folder.path().display().to_string(), Folder::new());
        let html = folder.path("out.html");
        let finished = show(&[&path, "--html", &html.display().to_string()]);
        assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
        if html.exists() {
            let data = embedded(&fs::read_to_string(&html).expect("the page can be read"));
            assert!(
                !data["runs"].as_array().expect("runs").is_empty(),
                "{path}: {}",
                finished.stderr
            );
            shown += 1;
        } else {
            assert_eq!(finished.code, Some(1), "{path}: {}", finished.stderr);
            let has_reason = [
                "no readable file found in this folder",
                "no run found in the input",
            ];
            assert!(
                has_reason.iter().any(|reason| finished.stderr.contains(reason)),
                "{path}: {}",
                finished.stderr
            );
        }
    }
    // All except the folders of conventions, of the kubelet and of other programs' OTLP.
    assert!(shown >= 9, "only {shown} folders were shown");
}

#[test]
fn the_file_holds_every_step_with_its_loss() {
    let folder = Folder::new();
    let html = folder.path("run.html");
    let log = corpus("surogate/training_dense.json").display().to_string();
    show(&[&log, "--html", &html.display().to_string()])
        .expect_code(0)
        .expect_words(&["wrote", "KiB"]);
    let data = embedded(&fs::read_to_string(&html).expect("the page can be read"));
    assert_eq!(data["overview"]["live"], false);
    let series = data["runs"][0]["series"].as_array().expect("series");
    let loss = series
        .iter()
        .find(|series| series["metric"] == "train.loss")
        .expect("a loss");
    let steps: Vec<i64> = loss["s"]
        .as_array()
        .expect("steps")
        .iter()
        .scan(0, |step, difference| {
            *step += difference.as_i64().expect("a difference");
            Some(*step)
        })
        .collect();
    assert_eq!(steps, (0..30).collect::<Vec<i64>>());
}

#[test]
fn inputs_and_unreplaceable_files_are_never_overwritten() {
    let folder = Folder::new();
    let (log, out) = (folder.path("training.json"), folder.path("out.html"));
    fs::copy(corpus("surogate/training_dense.json"), &log).expect("the log can be copied");
    let before = fs::read(&log).expect("the log can be read");
    for input in [log.clone(), folder.root().to_owned()] {
        show(&[&input.display().to_string(), "--html", &log.display().to_string()])
            .expect_code(2)
            .expect_words(&["is both input and output"]);
        assert!(fs::read(&log).expect("the log can be read") == before);
    }
    fs::create_dir(&out).expect("a folder can be made");
    show(&[&log.display().to_string(), "--html", &out.display().to_string()])
        .expect_code(1)
        .expect_words(&["cannot write", "name another file with --html"]);
    assert!(out.is_dir());
    assert_eq!(
        fs::read_dir(folder.root())
            .expect("the folder can be listed")
            .count(),
        2,
        "nothing unfinished is left"
    );
}

#[test]
fn runs_are_printed_without_colors_outside_a_terminal() {
    let folder = Folder::new();
    let nan = folder.file(
        "nan.jsonl",
        run_of(
            "a",
            100,
            |step| if step == 99 { f64::NAN } else { 100.0 - step as f64 },
        ),
    );
    let out = show(&["--text", &nan.display().to_string()])
        .expect_code(0)
        .stdout;
    assert!(
        out.contains("run a") && out.contains('█') && out.contains('×'),
        "{out}"
    );
    assert!(out.contains("Step 99") && out.contains("Loss NaN"), "{out}");
    assert!(!out.contains('\x1b'), "{out}");
}

/// Writes the telemetry of a job of several ranks whose loss is NaN from step 40 on, from the demo.
fn demo_with_nan(folder: &Folder) -> String {
    let file = folder.path("telemetry.jsonl");
    let mut demo = command(["demo", "--rate", "25", "--steps", "80", "--fault", "nan-loss@40"]);
    Finished::run(demo.args(["--json", "--to"]).arg(&file)).expect_code(0);
    fs::read_to_string(file).expect("the file can be read")
}

/// Returns the telemetry without derived signals; panics if it has none.
fn without_derived(telemetry: &str) -> String {
    let mut removed = 0;
    let mut out = String::new();
    for line in telemetry.lines() {
        let mut message: Value = serde_json::from_str(line).expect("a line is JSON");
        for (resources, scopes) in [("resourceMetrics", "scopeMetrics"), ("resourceLogs", "scopeLogs")] {
            let resources = message.get_mut(resources).and_then(Value::as_array_mut);
            for resource in resources.into_iter().flatten() {
                let scopes = resource[scopes].as_array_mut().expect("scopes");
                let before = scopes.len();
                scopes.retain(|scope| scope["scope"]["name"] != "pulsetrain.derive");
                removed += before - scopes.len();
            }
        }
        out += &format!("{message}\n");
    }
    assert!(removed > 0, "nothing is derived in the file");
    out
}

#[test]
fn verdicts_are_derived_only_for_files_without_verdicts() {
    let folder = Folder::new();
    let telemetry = demo_with_nan(&folder);
    let plain = folder.file("plain.jsonl", without_derived(&telemetry));
    for file in [folder.path("telemetry.jsonl"), plain] {
        let out = show(&["--text", &file.display().to_string()])
            .expect_code(0)
            .stdout;
        assert!(out.contains("4 ranks") && out.contains("Goodput"), "{out}");
        assert_eq!(out.matches("nonfinite_loss at step 40").count(), 1, "{out}");
    }
}

#[test]
fn rotated_files_are_read_in_order_of_time() {
    let folder = Folder::new();
    let telemetry = demo_with_nan(&folder);
    let expected = show(&["--text", &folder.path("telemetry.jsonl").display().to_string()]).stdout;
    for (name, telemetry) in [
        ("derived", telemetry.clone()),
        ("plain", without_derived(&telemetry)),
    ] {
        let lines: Vec<&str> = telemetry.split_inclusive('\n').collect();
        let (first, second) = lines.split_at(lines.len() / 2);
        let rotated = Folder::new();
        rotated.file("a.jsonl", second.concat());
        rotated.file("b.jsonl", first.concat());
        let shown = show(&["--text", &rotated.root().display().to_string()]).expect_code(0);
        assert_eq!(shown.stdout, expected, "{name}");
    }
}

#[test]
fn several_runs_are_shown_in_one_view() {
    let folder = Folder::new();
    for name in ["one", "two", "three"] {
        folder.file(&format!("{name}.jsonl"), run_of(name, 20, |_| 1.0));
    }
    let port = free_port();
    let mut shown = Process::start(
        "pulsetrain show",
        command(["show", "--no-open", "--listen"])
            .arg(format!("127.0.0.1:{port}"))
            .arg(folder.root()),
    );
    shown.wait_until_ready(|| is_open(port));
    let overview = get(port, "/api/overview", "").json();
    assert_eq!(
        (overview["runs"].as_array().map(Vec::len), &overview["live"]),
        (Some(3), &Value::Bool(false))
    );
    assert_eq!(get(port, "/api/run?id=two", "").json()["run"]["step"], 19);
}

#[test]
fn invalid_show_input_is_reported_with_the_fix() {
    let folder = Folder::new();
    let notes = folder.file("notes.txt", "buy milk\n").display().to_string();
    let empty = folder.file("empty.json", "").display().to_string();
    let nothing = Folder::new();
    let nothing = nothing.root().display().to_string();
    let html = folder.path("none/out.html").display().to_string();
    let good = corpus("surogate/training_dense.json").display().to_string();
    for (arguments, code, words) in [
        (
            vec![notes.as_str()],
            1,
            "unknown format: expected OTLP, a Perfetto trace or a log",
        ),
        (vec![empty.as_str()], 1, "the file is empty"),
        (vec![nothing.as_str()], 1, "no readable file found in this folder"),
        (vec!["/nowhere/run"], 1, "check the path"),
        (vec![], 2, "PATH"),
        (
            vec![good.as_str(), "--listen", "0.0.0.0:80"],
            2,
            "other machines could read the runs",
        ),
        (
            vec![good.as_str(), "--html", html.as_str()],
            1,
            "name another file with --html",
        ),
        (
            vec![good.as_str(), "--text", "--html", "x.html"],
            2,
            "cannot be used with",
        ),
    ] {
        let finished = show(&arguments).expect_code(code);
        assert!(
            finished.stderr.contains(words),
            "{arguments:?}: {}",
            finished.stderr
        );
    }
}

#[test]
fn hidden_points_are_counted_with_their_reason() {
    let folder = Folder::new();
    let file = folder
        .file("run.jsonl", run_of("a", 50, |_| 1.0))
        .display()
        .to_string();
    let html = folder.path("out.html").display().to_string();
    for output in [&["--text"][..], &["--html", &html]] {
        show(&[output, &[file.as_str()]].concat()).expect_code(0);
        // The step number, the loss, the gradient norm and the learning rate have 50 points each.
        let limited = show(&[output, &[file.as_str(), "--series-limit", "3"]].concat()).expect_code(1);
        let refused = limited.stderr.lines().find_map(|line| {
            line.split_once(" points are not shown: more than 3 series in a run; set --series-limit")
        });
        let items = refused.and_then(|(head, _)| head.rsplit(' ').next()?.parse::<u64>().ok());
        assert!(items >= Some(50), "{}", limited.stderr);
    }
    let data = embedded(&fs::read_to_string(&html).expect("the page can be read"));
    assert_eq!(data["runs"][0]["series"].as_array().map(Vec::len), Some(3));
    let refused = &data["overview"]["page"]["refused"][0];
    assert!(
        refused[0]
            .as_str()
            .is_some_and(|reason| reason.contains("more than 3 series")),
        "{refused}"
    );
}

#[test]
fn show_on_a_used_port_reports_the_address() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let log = corpus("surogate/training_dense.json").display().to_string();
    show(&[&log, "--listen", &address])
        .expect_code(1)
        .expect_words(&[&address, "choose another port with --listen"]);
}

#[test]
fn url_is_printed_when_no_browser_is_available() {
    let port = free_port();
    let mut command = command(["show", "--listen"]);
    for display in ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"] {
        command.env_remove(display);
    }
    command
        .arg(format!("127.0.0.1:{port}"))
        .arg(corpus("surogate/training_dense.json"));
    let mut shown = Process::start("pulsetrain show", &mut command);
    shown.wait_until_ready(|| is_open(port));
    wait_until("the address and the reason are printed", || {
        let log = shown.log();
        log.contains(&format!("http://127.0.0.1:{port}/")) && log.contains("cannot open a browser")
    });
    shown.stop_well();
}

#[test]
fn html_file_contains_run_text_only_in_its_data() {
    let folder = Folder::new();
    let html = folder.path("run.html");
    let lines = folder.file("runs.jsonl", hostile_run()).display().to_string();
    show(&[&lines, "--html", &html.display().to_string()]).expect_code(0);
    let page = fs::read_to_string(&html).expect("the page can be read");
    assert!(!page.contains("window.hacked"));
    let run = &embedded(&page)["runs"][0];
    assert_eq!(
        (&run["run"]["id"], &run["open"][0]["text"]),
        (&HOSTILE.into(), &HOSTILE.into())
    );
}
