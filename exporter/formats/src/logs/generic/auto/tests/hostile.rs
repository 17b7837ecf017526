//! Lines that nobody prints: their parts are nested or repeated without an end.

use super::*;

/// A stack that is no larger than that of a thread of the agent.
const STACK: usize = 2 << 20;

#[test]
fn nested_parts_of_a_line_do_not_exhaust_the_stack() {
    let nested = 20_000;
    let lines = [
        format!("step 1 loss {}\n", "\u{2212}".repeat(nested)),
        format!("| a | {} |\n", "\u{2212}".repeat(nested)),
        format!("{}1{}\n", "{\"a\":[".repeat(nested), "]}".repeat(nested)),
        format!("step 1 loss {}2.5\n", "tensor(".repeat(nested)),
        format!("{}step 1 loss 2.5\n", "[rank 0] ".repeat(nested)),
    ];
    let log = lines.concat();
    let reading = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        agree(log.as_bytes());
        Sampled::read(&FORMAT, &log).counts.records
    });
    let records = reading.expect("a thread can be started").join();
    assert!(records.is_ok_and(|records| records > 0));
}
