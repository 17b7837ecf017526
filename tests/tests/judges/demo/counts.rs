//! The counts of the demo equal the content of its file, and the content of the file conforms to the registry.

use pulsetrain_tests::{Folder, semconv};

use crate::demo::world::{run, same_in_file};

fn check(arguments: &[&str]) {
    let folder = Folder::new();
    let file = folder.path("demo.jsonl");
    let path = file.to_str().expect("the path is text");
    let to = ["--to", path];
    let finished = run(arguments.iter().chain(&to)).expect_code(0);
    let (counts, items) = same_in_file(&finished, &file);
    assert!(counts.points > 1000 && counts.spans > 100, "{counts:?}");
    let sent = &finished.summary()["sent"];
    assert_eq!(sent["spans"], items.of_kind("span").len());
    let checked = semconv(["check", path]).expect_code(0);
    assert!(checked.stdout.contains("nothing found"), "{}", checked.stdout);
}

#[test]
fn healthy_demo_is_counted_and_conforms_to_the_registry() {
    check(&["--steps", "120"]);
}

#[test]
fn reinforcement_learning_demo_is_counted_and_conforms_to_the_registry() {
    check(&["--steps", "60", "--workload", "rl", "--ranks", "9"]);
}

#[test]
fn demo_with_a_restart_is_counted_and_conforms_to_the_registry() {
    check(&["--steps", "80", "--fault", "gpu-lost@60", "--fault", "xid@20"]);
}

#[test]
fn demo_summary_lists_the_injected_faults() {
    let folder = Folder::new();
    let file = folder.path("demo.jsonl");
    let arguments = ["--steps", "40", "--fault", "straggler@20:rank=2", "--to"];
    let finished = run(arguments
        .iter()
        .map(|text| text.as_ref())
        .chain([file.as_os_str()]))
    .expect_code(0);
    let fault = &finished.summary()["faults"][0];
    assert_eq!(fault["fault"], "straggler");
    assert_eq!(fault["verdict"], "straggler");
    assert_eq!(fault["subject"], "rank 2");
    assert_eq!(fault["first_step"], 20);
}
