//! The dashboards and alerts in `grafana/` equal the output of the generator for `grafana/definitions`.

use std::path::Path;

use pulsetrain_grafana::{generate, stale};

#[test]
fn checked_in_dashboards_match_their_definitions() {
    let grafana = Path::new(env!("CARGO_MANIFEST_DIR")).join("../grafana");
    let files = generate(&grafana.join("definitions")).expect("the definitions are correct");
    let stale = stale(&grafana, &files).expect("the files can be read");
    assert!(
        stale.is_empty(),
        "run `cargo run -p pulsetrain-grafana`, which writes {stale:?}"
    );
}
