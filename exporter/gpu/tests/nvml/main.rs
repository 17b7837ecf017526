//! The documentation page about GPUs: its table is generated from the rows that are read, so that both agree.

mod union;

use std::{env, fs, path::Path};

use pulsetrain_gpu::{amd, nvml};

const BEFORE: &str = include_str!("page.md");
const AMD: &str = include_str!("amd.md");
const BETWEEN: &str = include_str!("union.md");

#[test]
fn documented_metric_tables_match_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("GPU.md");
    let (nvidia, others) = (nvml::markdown(), union::markdown());
    let expected = format!(
        "{BEFORE}\n{nvidia}\n{AMD}\n{}\n{BETWEEN}\n{others}",
        amd::markdown()
    );
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &expected).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "exporter/gpu/GPU.md is out of date; write it with `UPDATE_GOLDEN=1 cargo test --workspace --all-features --locked --test nvml`"
    );
}

#[test]
fn every_row_documents_why_a_value_may_be_absent() {
    let table = nvml::table();
    assert!(table.len() > 150, "only {} rows", table.len());
    for row in table {
        assert!(!row.absent.is_empty() && !row.call.is_empty(), "{row:?}");
    }
}
