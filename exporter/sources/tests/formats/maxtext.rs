//! MaxText: the spans of standard error.

use crate::{
    Imported,
    imported::{attributes, time},
};

#[test]
fn a_step_ends_at_the_time_of_its_line() {
    let imported = Imported::of("maxtext", "maxtext/demo.stderr");
    assert_eq!(imported.spans.len(), 12);
    let first = &imported.spans[0];
    assert_eq!(attributes(first)["train.step"], "0");
    // 2026-11-21 00:33:13.624218 UTC, and 2.041 s before.
    assert_eq!(time(first, "endTimeUnixNano"), 1_795_221_193_624_218_000);
    assert_eq!(time(first, "startTimeUnixNano"), 1_795_221_191_583_218_000);
}
