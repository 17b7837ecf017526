//! Conversions from a live Tempo, by TraceQL and by id, if `PULSETRAIN_TEMPO` names one; `recorded` needs none.

use pulsetrain_tests::{Tempo, TraceProcessor, some_or_return, wait_until};
use serde_json::json;

use crate::backends::world::{Conversion, RANKS, SPANS, Steps, problems, trace_id};

/// The traces of one response of Tempo, and the seconds of a run that ends now.
const PAGE: usize = 500;
const LATE: u64 = 1_500;

const ALL: &str = "{ name = \"train.step\" }";

/// Starts a Tempo with these steps, and waits until a search finds this number of them.
fn tempo_with(steps: &Steps, count: usize) -> Option<Tempo> {
    let tempo = Tempo::start(&Tempo::program()?);
    tempo.push(&steps.otlp());
    wait_until("Tempo finds every step", || tempo.search(ALL).len() == count);
    Some(tempo)
}

#[test]
fn every_step_found_by_a_tempo_query_is_fetched_with_exact_timestamps() {
    let steps = Steps::new("trainer", 12);
    let tempo = some_or_return!(tempo_with(&steps, 12));
    let url = tempo.url();
    let all = Conversion::new(&["--tempo", &url, "--query", ALL]);
    all.items().assert_same(&steps.items());

    let two = "{ name = \"train.step\" && span.train.step >= 3 && span.train.step < 5 }";
    let two = Conversion::new(&[
        "--tempo",
        &url,
        "--query",
        two,
        "--since",
        "10m",
        "--parallel",
        "1",
    ]);
    assert_eq!(two.items().len() as u64, 2 * RANKS * SPANS);

    let judge = some_or_return!(TraceProcessor::require_or_skip());
    all.run("out.pftrace").expect_code(0);
    let [processes, nested] = judge.query(
        &all.path("out.pftrace"),
        [
            "select name from process where name is not null order by name",
            "select count(*) as passes from slice s join slice p on p.id = s.parent_id \
             where p.name = 'train.step' and p.dur = 100000001 and s.dur in (39999000, 59000003)",
        ],
    );
    assert_eq!(
        processes,
        [
            json!({"name": "rank 0 trainer"}),
            json!({"name": "rank 1 trainer"})
        ]
    );
    assert_eq!(nested, [json!({"passes": 12 * RANKS * (SPANS - 1)})]);
    let [first] = judge.query(
        &all.path("out.pftrace"),
        ["select cast(min(ts) as text) as first from slice where name = 'train.step'"],
    );
    assert_eq!(first, [json!({"first": steps.first.to_string()})]);
}

#[test]
fn traces_are_fetched_by_id_and_a_missing_one_is_reported() {
    let steps = Steps::new("trainer", 3);
    let tempo = some_or_return!(tempo_with(&steps, 3));
    let url = tempo.url();
    let ids = [trace_id(0), trace_id(2)].join(",");
    let two = Conversion::new(&["--tempo", &url, "--trace-id", &ids]);
    assert_eq!(two.items().len() as u64, 2 * RANKS * SPANS);

    let short = trace_id(0).trim_start_matches('0').to_owned();
    let some = Conversion::new(&["--tempo", &url, "--trace-id", &short, "--trace-id", "abc"]);
    let finished = some.run("some.jsonl").expect_code(1);
    assert!(problems(&finished).contains(&format!("there is no trace {:0>32}", "abc")));
    assert_eq!(finished.summary()["messages"], 1);
}

#[test]
fn traces_excluded_by_a_limit_or_window_are_reported() {
    let steps = Steps::new("trainer", 6);
    let tempo = some_or_return!(tempo_with(&steps, 6));
    let url = tempo.url();
    let some = Conversion::new(&["--tempo", &url, "--query", ALL, "--limit", "4"]);
    let finished = some.run("some.jsonl").expect_code(1);
    assert!(
        problems(&finished).contains("more traces than the 4"),
        "{}",
        problems(&finished)
    );
    let before = "2026-01-01T00:00:00Z..2026-01-01T01:00:00Z";
    let none = Conversion::new(&["--tempo", &url, "--query", ALL, "--window", before]);
    let finished = none.run("none.jsonl").expect_code(1);
    let printed = problems(&finished);
    assert!(
        printed.contains("no trace matches") && printed.contains("2026-01-01T01:00:00Z"),
        "{printed}"
    );
}

/// Tempo indexes spans by their arrival time if it is much later than their own time: the halves of a window then return fewer
/// traces than the complete window.
#[test]
fn late_traces_that_only_the_complete_window_returns_are_fetched() {
    let program = some_or_return!(Tempo::program());
    let tempo = Tempo::start(&program);
    let late = Steps::new("trainer", LATE);
    tempo.push(&late.otlp());
    wait_until("Tempo returns a full answer", || tempo.search(ALL).len() >= PAGE);
    let url = tempo.url();
    let found = Conversion::new(&["--tempo", &url, "--query", ALL, "--limit", "10000"]);
    let finished = found.run("late.jsonl");
    let traces = finished.summary()["messages"]
        .as_u64()
        .expect("the summary counts messages");
    println!("{traces} of {LATE} late traces");
    assert!(traces >= PAGE as u64, "{traces} {}", problems(&finished));
    if traces < LATE {
        finished
            .expect_code(1)
            .expect_words(&["another time than that of their spans"]);
    }
}

#[test]
fn invalid_traceql_query_reports_the_error_of_tempo() {
    let program = some_or_return!(Tempo::program());
    let tempo = Tempo::start(&program);
    let url = tempo.url();
    Conversion::new(&["--tempo", &url, "--query", "{ name = "])
        .run("out.jsonl")
        .expect_code(1)
        .expect_words(&["400 Bad Request", "invalid TraceQL query"]);
}

#[test]
fn tenant_sees_only_its_own_traces() {
    let program = some_or_return!(Tempo::program());
    let tempo = Tempo::start_for_tenant(&program, "team-a");
    let steps = Steps::new("trainer", 2);
    tempo.push(&steps.otlp());
    wait_until("Tempo has the last step", || tempo.trace(&trace_id(1)).is_some());
    let url = tempo.url();
    let ids = [trace_id(0), trace_id(1)].join(",");
    Conversion::new(&["--tempo", &url, "--trace-id", &ids, "--tenant", "team-a"])
        .items()
        .assert_same(&steps.items());
    Conversion::new(&[
        "--tempo",
        &url,
        "--trace-id",
        &ids,
        "--header",
        "X-Scope-OrgID: team-a",
    ])
    .items()
    .assert_same(&steps.items());
    let other = Conversion::new(&["--tempo", &url, "--trace-id", &ids, "--tenant", "team-b"]);
    let finished = other.run("out.jsonl").expect_code(1);
    assert_eq!(finished.summary()["inputs"][0]["lost"], 2);
    let nobody = Conversion::new(&["--tempo", &url, "--trace-id", &ids]);
    let finished = nobody.run("out.jsonl").expect_code(1);
    assert!(
        problems(&finished).contains("--tenant"),
        "{}",
        problems(&finished)
    );
}
