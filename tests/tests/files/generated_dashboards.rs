//! The dashboards and alerts in `grafana/` equal the output of the generator for `grafana/definitions`.

use std::path::Path;

use pulsetrain_grafana::{generate, out_of_date, stale};

#[test]
fn checked_in_dashboards_match_their_definitions() {
    let grafana = Path::new(env!("CARGO_MANIFEST_DIR")).join("../grafana");
    let files = generate(&grafana.join("definitions")).expect("the definitions are correct");
    let stale = stale(&grafana, &files).expect("the files can be read");
    let stale: Vec<String> = stale.iter().map(|path| out_of_date(path)).collect();
    assert!(stale.is_empty(), "{}", stale.join("\n"));
}
