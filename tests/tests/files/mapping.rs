//! `--mapping`, `--suggest-mapping` and logs without configuration: the examples of `exporter/mapping/MAPPING.md`, imported as they are.

use std::{fs, path::Path};

use pulsetrain_tests::{
    Finished, Folder, Import, command,
    otlp::{list, messages},
    semconv,
};
use serde_json::Value;

/// Returns the code blocks below a heading of the page, with their languages.
fn blocks(heading: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../exporter/mapping/MAPPING.md");
    let page = fs::read_to_string(path).expect("the page can be read");
    let section = page
        .split("\n## ")
        .find(|section| section.starts_with(heading))
        .unwrap_or_else(|| panic!("{heading} is a heading"));
    let mut pieces = section.split("```");
    pieces.next();
    let mut blocks = Vec::new();
    while let (Some(block), Some(_)) = (pieces.next(), pieces.next()) {
        let (language, text) = block.split_once('\n').expect("a block has lines");
        blocks.push((language.to_owned(), text.to_owned()));
    }
    blocks
}

/// Imports the log of a section by its mapping. Returns the points as `name{sorted attributes}=value`, histograms by their
/// sums.
fn imported(heading: &str, format: &str) -> Vec<String> {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let blocks = blocks(heading);
    let log = folder.file("log", &blocks[0].1);
    assert_eq!(blocks[1].0, "yaml");
    let mapping = folder.file("mapping.yaml", &blocks[1].1);
    let import = Import::new(log).arg("--format").arg(format);
    import.arg("--mapping").arg(mapping).to(&out).run().expect_code(0);
    let checked = semconv(["check".as_ref(), out.as_os_str()]).expect_code(0);
    assert!(checked.stdout.ends_with("nothing found\n"), "{}", checked.stdout);
    points_of(&out)
}

/// Returns the points of a file of OTLP/JSON.
fn points_of(out: &Path) -> Vec<String> {
    messages(out).iter().flat_map(points).collect()
}

fn points(message: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for metric in list(&message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]) {
        for kind in ["gauge", "sum", "histogram"] {
            for point in list(&metric[kind]["dataPoints"]) {
                let value = ["asDouble", "asInt", "sum"].iter().find_map(|key| point.get(key));
                let value = value.expect("a point has a value").to_string();
                let value: f64 = value.trim_matches('"').parse().expect("a value is a number");
                let mut attributes: Vec<&str> = list(&point["attributes"])
                    .iter()
                    .filter_map(|attribute| attribute["value"]["stringValue"].as_str())
                    .collect();
                // Attributes are a set; their order in the message has no meaning.
                attributes.sort_unstable();
                let name = metric["name"].as_str().expect("a metric has a name");
                found.push(format!("{name}{{{}}}={value}", attributes.join(",")));
            }
        }
    }
    found
}

fn has_all(points: &[String], expected: &[&str]) {
    for point in expected {
        assert!(
            points.iter().any(|found| found == point),
            "{point} is not in {points:#?}"
        );
    }
}

#[test]
fn documented_json_lines_example_yields_the_documented_points() {
    let points = imported("JSON lines", "json");
    has_all(
        &points,
        &[
            "train.loss{}=2.5",
            "train.loss{}=2.25",
            "train.step.duration{}=0.25",
            "memory.framework.allocated{}=13421772800",
            "train.loss_component{moe_lb}=0.5",
            "train.loss_component{moe_lb}=0.25",
            "train.tokens{}=4096",
            "train.tokens{}=8192",
            "train.global_step{}=10",
            "train.global_step{}=11",
        ],
    );
    // Five values and two of the step, twice.
    assert_eq!(points.len(), 14, "{points:#?}");
}

#[test]
fn documented_key_value_example_yields_the_documented_points() {
    let points = imported("Lines of key=value", "keyvalue");
    has_all(
        &points,
        &[
            "train.loss{}=2.5",
            "train.step.duration{}=0.25",
            "train.mfu{}=0.415",
            "train.throughput.tokens{}=1500",
            "train.throughput.tokens{}=1480",
            "rl.trajectory_reward{max,train}=3",
            "rl.trajectory_reward{max,train}=4",
        ],
    );
    assert_eq!(points.len(), 14, "{points:#?}");
}

#[test]
fn documented_custom_line_example_yields_the_documented_points() {
    let points = imported("Lines of any other form", "keyvalue");
    has_all(
        &points,
        &[
            "train.loss{}=2.31",
            "train.loss{}=2.25",
            "train.learning_rate{}=0.0003",
            "train.throughput.tokens{}=1200",
            "train.global_step{}=200",
        ],
    );
    assert_eq!(points.len(), 10, "{points:#?}");
}

#[test]
fn invalid_mapping_is_a_usage_error_with_its_location() {
    let folder = Folder::new();
    let mapping = folder.file(
        "mapping.yaml",
        "values:\n  - {key: loss, metric: train.los}\n  - {key: dt, metric: train.step.duration, unit: GiB}\n",
    );
    let run = |format: &str| {
        let import = Import::new("log").arg("--format").arg(format);
        import.arg("--mapping").arg(&mapping).to("-").run().expect_code(2)
    };
    let finished = run("json");
    for place in ["mapping.yaml:2:25: ", "mapping.yaml:3:50: "] {
        assert!(finished.stderr.contains(place), "{}", finished.stderr);
    }
    let finished = run("surogate");
    assert!(
        finished.stderr.contains("json, keyvalue, text, csv"),
        "{}",
        finished.stderr
    );
}

#[test]
fn run_parses_trainer_output_with_a_mapping() {
    let folder = Folder::new();
    let mapping = "step: it\nvalues:\n  - {key: l, metric: train.loss}\n";
    let (mapping, out) = (folder.file("mapping.yaml", mapping), folder.path("out.jsonl"));
    let mut run = command(["run", "--format", "keyvalue", "--mapping"]);
    run.arg(mapping).arg("--to").arg(&out);
    run.args([
        "--",
        "sh",
        "-c",
        "echo starting; echo it=1 l=2.5; echo it=2 l=2.25",
    ]);
    Finished::run(&mut run).expect_code(0);
    has_all(
        &points_of(&out),
        &["train.loss{}=2.5", "train.loss{}=2.25", "train.steps{}=2"],
    );
}

#[test]
fn documented_log_is_read_without_configuration_and_its_keys_are_listed() {
    let folder = Folder::new();
    let blocks = blocks("Logs without configuration");
    let (log, out) = (folder.file("own.log", &blocks[0].1), folder.path("out.jsonl"));
    let finished = Import::new(log).to(&out).run().expect_code(0);
    // The page shows the lines of the summary without the folder.
    for line in blocks[1].1.lines().filter(|line| line.contains("->")) {
        let line = line.trim_start_matches("own.log: ");
        assert!(finished.stderr.contains(line), "{line}: {}", finished.stderr);
    }
    has_all(
        &points_of(&out),
        &[
            "train.global_step{}=300",
            "train.loss{}=2.25",
            "train.learning_rate{}=0.0003",
            "train.throughput.tokens{}=1200",
        ],
    );
}

#[test]
fn suggested_mapping_reads_its_log_at_least_like_automatic_detection() {
    let folder = Folder::new();
    let [alone, mapped] = ["alone.jsonl", "mapped.jsonl"].map(|name| folder.path(name));
    let logs = fs::read_dir(pulsetrain_tests::corpus("generic")).expect("the corpus can be listed");
    let mut logs: Vec<_> = logs.map(|log| log.expect("a log can be listed").path()).collect();
    logs.retain(|log| log.extension().is_none_or(|extension| extension != "md"));
    // A braced key, a key with a line break, a key that a line repeats, and a value that means none.
    let lines = (1..9)
        .map(|step| format!("{{\"step\": {step}, \"loss\": 2.5, \"val{{loss}}\": 3.5, \"a\\nb\": 1}}\n"));
    let repeated =
        (1..9).map(|step| format!("Iteration {step}, loss = 2.5 (* 1 = 2.6 loss), mfu -100.00%\n"));
    for (name, text) in [
        ("braces.jsonl", lines.collect::<String>()),
        ("repeated.log", repeated.collect()),
    ] {
        logs.push(folder.file(name, text));
    }
    for log in &logs {
        let suggested = Finished::run(command(["import", "--suggest-mapping"]).arg(log)).expect_code(0);
        let mapping = folder.file("mapping.yaml", &suggested.stdout);
        let import = || Import::new(log).arg("--run-id").arg("same");
        import()
            .arg("--format")
            .arg("generic")
            .to(&alone)
            .run()
            .expect_code(0);
        import()
            .arg("--mapping")
            .arg(mapping)
            .to(&mapped)
            .run()
            .expect_code(0);
        let [alone, mut mapped] = [&alone, &mapped].map(|out| points_of(out));
        assert!(!alone.is_empty(), "{}", log.display());
        for point in alone {
            let place = mapped.iter().position(|found| *found == point);
            let place = place.unwrap_or_else(|| panic!("{}: {point}: {}", log.display(), suggested.stdout));
            mapped.swap_remove(place);
        }
    }
    assert!(logs.len() > 10);
}

#[test]
fn documented_suggestion_is_that_of_the_documented_log() {
    let folder = Folder::new();
    let blocks = blocks("Logs without configuration");
    let mut pages = 31..;
    let lines = blocks[0].1.lines().map(|line| match line.starts_with("step ") {
        true => format!(
            "{line}\nshelf 7 evicted {} pages\n",
            pages.next().unwrap_or_default()
        ),
        false => format!("{line}\n"),
    });
    let log = folder.file("own.log", lines.collect::<String>());
    let suggested = Finished::run(command(["import", "--suggest-mapping"]).arg(log)).expect_code(0);
    let (language, documented) = &blocks[3];
    assert_eq!(language, "yaml");
    assert!(suggested.stdout.ends_with(documented), "{}", suggested.stdout);
}

#[test]
fn suggestion_for_a_rejected_log_reads_its_steps_and_values() {
    let folder = Folder::new();
    let lines =
        (1..6).map(|step| format!("2031-05-06 10:00:0{step} lap {step}0 at step {step}: warp {step}.5\n"));
    let log = folder.file("own.log", lines.collect::<String>());
    Import::new(&log).to("-").run().expect_code(1);
    let suggested = Finished::run(command(["import", "--suggest-mapping"]).arg(&log)).expect_code(0);
    for part in [
        "no format recognises this log",
        "\nstep: step\n",
        "# - {key: warp, metric: }  # 5 x 1.5, 2.5, 3.5; kept as train.custom",
        "#   train.custom warp: 5 points, 1.5 to 5.5",
        "#   train.global_step: 5 points, steps 1 to 5",
    ] {
        assert!(suggested.stdout.contains(part), "{part}: {}", suggested.stdout);
    }
    // A user gives a group a metric.
    let edited = suggested
        .stdout
        .replace("# - {key: warp, metric: }", "- {key: warp, metric: train.loss}");
    let (mapping, out) = (folder.file("mapping.yaml", edited), folder.path("out.jsonl"));
    let finished = Import::for_people(&log)
        .arg("--mapping")
        .arg(mapping)
        .to(&out)
        .run()
        .expect_code(0);
    assert!(
        !finished.stderr.contains("no times in this log"),
        "{}",
        finished.stderr
    );
    has_all(
        &points_of(&out),
        &[
            "train.loss{}=1.5",
            "train.loss{}=5.5",
            "train.global_step{}=5",
            "train.custom{lap}=50",
        ],
    );
}

#[test]
fn a_mapping_extends_only_its_own_format() {
    let folder = Folder::new();
    let extended = |name: &str| folder.file("mapping.yaml", format!("extends: {name}\nvalues: []\n"));
    let import = |name: &str| Import::new("log").arg("--mapping").arg(extended(name));
    let finished = import("generick").to("-").run().expect_code(2);
    assert!(
        finished.stderr.contains("there is no format \"generick\""),
        "{}",
        finished.stderr
    );
    let finished = import("generic")
        .arg("--format")
        .arg("json")
        .to("-")
        .run()
        .expect_code(2);
    assert!(
        finished.stderr.contains("the format that it extends"),
        "{}",
        finished.stderr
    );
}

#[test]
fn run_parses_the_output_of_a_python_script_without_configuration() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let script = "import time\nprint('starting')\nfor step in (10, 20, 30, 40):\n    print(f'step {step} | loss {25 / step} | lr 3e-4')\n";
    let mut run = command(["run", "--to"]);
    run.arg(&out).args(["--", "python3", "-c", script]);
    Finished::run(&mut run).expect_code(0);
    has_all(
        &points_of(&out),
        &["train.loss{}=2.5", "train.loss{}=0.625", "train.global_step{}=40"],
    );
}

#[test]
fn unknown_log_is_rejected_with_its_keys_and_the_next_command() {
    let folder = Folder::new();
    let log = folder.file("own.log", "alpha=1 beta=2\nalpha=2 beta=3\nalpha=3 beta=4\n");
    let finished = Import::new(&log).to("-").run().expect_code(1);
    let next = format!("pulsetrain import --suggest-mapping {}", log.display());
    for part in ["alpha, beta", &next] {
        assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
    }
}

#[test]
fn a_mapping_without_a_format_names_the_key_to_add() {
    let folder = Folder::new();
    let mapping = folder.file("mapping.yaml", "step: it\n");
    let finished = Import::new("log")
        .arg("--mapping")
        .arg(mapping)
        .to("-")
        .run()
        .expect_code(2);
    assert!(finished.stderr.contains("`format: text`"), "{}", finished.stderr);
}

#[test]
fn log_of_a_custom_format_in_a_folder_is_imported() {
    let folder = Folder::new();
    let other = Folder::new();
    let out = other.path("out.jsonl");
    folder.file("own.log", "step 1 loss 2.5\nstep 2 loss 2.25\nstep 3 loss 2\n");
    folder.file("config.yaml", "lr: 0.1\nloss: 1\nsteps: 9\n");
    let finished = Import::new(folder.root()).to(&out).run().expect_code(0);
    assert!(!finished.stderr.contains("config.yaml"), "{}", finished.stderr);
    has_all(&points_of(&out), &["train.loss{}=2", "train.global_step{}=3"]);
}

#[test]
fn summary_lists_the_keys_of_a_mapping_and_what_no_record_has() {
    let folder = Folder::new();
    let log = folder.file("a.log", "itr=1 loss=2.5 foo=3 kind=a\n");
    let import = |mapping: &str| {
        let mapping = folder.file("mapping.yaml", mapping);
        Import::new(&log).arg("--mapping").arg(mapping).to("-").run()
    };
    let rows = "values: [{key: loss, metric: train.loss}, {key: lr, metric: train.learning_rate}]\n";
    let mapping = format!("format: keyvalue\nstep: iter\ntime: at\n{rows}");
    let summary = import(&mapping).expect_code(0).stderr;
    for expected in [
        "\"named by the mapping\"",
        "\"loss -> train.loss\"",
        "\"kept as train.custom: itr, foo\"",
        "\"kept in events train.custom_record: kind\"",
        "\"parts of the mapping that this log does not use: step: iter, time: at, lr\"",
    ] {
        assert!(summary.contains(expected), "{expected} is not in {summary}");
    }
    let summary = import("format: keyvalue\nstep: iter\n").expect_code(1).stderr;
    let expected =
        "a.log has no records of the format keyvalue; found the keys itr, loss, foo: check the format";
    assert!(summary.contains(expected), "{summary}");
}
