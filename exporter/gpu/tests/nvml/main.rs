//! The documentation page about GPUs: its table is generated from the rows that are read, so that both agree.

mod union;

use std::{env, fs, path::Path};

use pulsetrain_gpu::{amd, nvml};

const BEFORE: &str = include_str!("page.md");
const AMD: &str = include_str!("amd.md");
const BETWEEN: &str = include_str!("union.md");

#[test]
fn the_documented_table_is_the_one_that_is_read_by() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("GPU.md");
    let (nvidia, others) = (nvml::markdown(), union::markdown());
    let expected = format!(
        "{BEFORE}\n{nvidia}\n{AMD}\n{}\n{BETWEEN}\n{others}",
        amd::markdown()
    );
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &expected).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 writes the page");
    assert!(
        found == expected,
        "GPU.md is not up to date; UPDATE_GOLDEN=1 writes it"
    );
}

#[test]
fn every_row_says_what_it_means_that_there_is_no_answer() {
    let table = nvml::table();
    assert!(table.len() > 150, "only {} rows", table.len());
    for row in table {
        assert!(!row.absent.is_empty() && !row.call.is_empty(), "{row:?}");
    }
}
