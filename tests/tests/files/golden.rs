//! The complete output of an import equals the checked-in file; `UPDATE_GOLDEN=1` rewrites it.

use std::{env, fs, path::Path};

use pulsetrain_tests::{Import, Items, corpus};
use serde_json::{Deserializer, Value};

#[test]
fn import_of_a_dense_model_log_matches_the_golden_file() {
    becomes_the_golden_file("training_dense");
}

#[test]
fn import_of_a_mixture_of_experts_log_matches_the_golden_file() {
    becomes_the_golden_file("training_moe");
}

fn becomes_the_golden_file(name: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/{name}.json"));
    let finished = Import::new(corpus(&format!("surogate/{name}.json")))
        .to("-")
        .run()
        .expect_code(0);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, pretty(&finished.stdout))
            .unwrap_or_else(|error| panic!("{}: {error}", golden.display()));
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    let expected: String = messages(&expected)
        .map(|message| format!("{message}\n"))
        .collect();
    if let Some(difference) = Items::parse(&finished.stdout).difference(&Items::parse(&expected)) {
        panic!(
            "tests/golden/{name}.json is out of date; write it with `UPDATE_GOLDEN=1 cargo test --workspace --all-features \
             --locked --test files -- golden`. Output and file differ:\n{difference}"
        );
    }
}

/// Returns the messages with one line per field, so that a diff shows the changed field.
fn pretty(lines: &str) -> String {
    messages(lines).map(|message| format!("{message:#}\n")).collect()
}

fn messages(text: &str) -> impl Iterator<Item = Value> {
    Deserializer::from_str(text)
        .into_iter()
        .map(|message| message.expect("the output is JSON"))
}
