//! The page in a real Chromium: no errors on its console, and the content for users is visible.

use pulsetrain_tests::{Finished, Folder, Judge, command, some_or_return};
use serde_json::json;

use crate::page::{
    agent::Agent,
    look::{DRAWN, HARM, LOSS_DRAWN, RED_PIXELS, assert_harmless, is_live, look, look_and_draw},
    world::{Demo, hostile_run, run_of, run_that_loses_rank_0},
};

/// Returns the URL of the page of these files, as one HTML file.
fn html_of(folder: &Folder, arguments: &[&str]) -> String {
    let html = folder.path("page.html");
    let mut show = command(["show", "--html"]);
    show.arg(&html).args(arguments);
    Finished::run(&mut show).expect_code(0);
    format!("file://{}", html.display())
}

/// Returns the URL of the page of runs that are given as OTLP.
fn page_of(folder: &Folder, lines: &str) -> String {
    let file = folder.file("runs.jsonl", lines).display().to_string();
    html_of(folder, &[&file])
}

#[test]
fn live_run_updates_the_page_without_errors() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let demo = Demo::start(&["--rate", "10", "--ranks", "4"]);
    let url = format!("http://127.0.0.1:{}/", demo.port);
    // It becomes true only if updates arrive: the step must advance from the first one seen.
    let moves = "(() => { const step = Number((document.querySelector('.tile .big') || {textContent: 'x'}).textContent.replace(/,/g, '')); \
        if (!(step >= 0)) return false; window.first ??= step; return step >= window.first + 5 && document.querySelectorAll('#training canvas').length > 3; })()";
    let ask = [
        "document.querySelector('#live').textContent",
        "document.querySelectorAll('#ranks tbody tr').length",
        "document.querySelectorAll('#gpus tbody tr').length",
        "document.querySelectorAll('#steps .keys i').length",
    ];
    let seen = look(&judge, &url, moves, &ask);
    assert_eq!(seen[..3], [json!("Live"), json!(4), json!(4)]);
    assert!(seen[3].as_u64() >= Some(4), "the step has phases: {}", seen[3]);
    let moved = is_live("loss.s.length > 60");
    let wanted = json!({"url": url, "until": moved, "ask": ["document.title"], "width": 1200, "height": 800, "scheme": "dark"});
    assert_eq!(
        look_and_draw(&judge, "live", wanted),
        [json!("demo-sft-0 · Pulsetrain")]
    );
    let ask = [
        "document.querySelector('#steps').scrollIntoView()",
        "document.querySelector('#ranks canvas').getAttribute('aria-label')",
    ];
    let wanted = json!({"url": url, "until": moved, "ask": ask, "width": 1200, "height": 860});
    let seen = look_and_draw(&judge, "steps-and-ranks", wanted);
    assert!(
        seen[1].as_str().is_some_and(|label| label.contains("4 ranks")),
        "{}",
        seen[1]
    );
    let ask = ["document.documentElement.scrollWidth <= innerWidth"];
    let wanted = json!({"url": url, "until": moved, "ask": ask, "width": 390, "height": 780});
    let seen = look_and_draw(&judge, "phone", wanted);
    assert_eq!(seen, [json!(true)], "a phone scrolls in one direction only");
}

#[test]
fn nan_losses_are_drawn_as_a_gap_with_a_marker() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let folder = Folder::new();
    let ask = [
        RED_PIXELS,
        "document.querySelector('#training canvas').getAttribute('aria-label')",
    ];
    let diverged = page_of(
        &folder,
        &run_of("bad", 300, |step| {
            if (200..240).contains(&step) {
                f64::NAN
            } else {
                3.0 - step as f64 / 200.0
            }
        }),
    );
    let wanted = json!({"url": diverged, "until": LOSS_DRAWN, "ask": ask, "width": 1200, "height": 780});
    let seen = look_and_draw(&judge, "diverged", wanted);
    assert!(
        seen[0].as_u64() > Some(50),
        "the mark is drawn: {} pixels",
        seen[0]
    );
    assert!(
        seen[1].as_str().is_some_and(|label| label.contains("not finite")),
        "{}",
        seen[1]
    );
    let healthy = page_of(&folder, &run_of("good", 300, |step| 3.0 - step as f64 / 200.0));
    let seen = look(&judge, &healthy, LOSS_DRAWN, &ask);
    assert_eq!(seen[0], 0, "a healthy run has no mark");
}

#[test]
fn sixty_four_ranks_get_one_row_each() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let folder = Folder::new();
    let file = folder.path("ranks.binpb").display().to_string();
    let mut demo = command(["demo", "--ranks", "64", "--steps", "40", "--rate", "8", "--to"]);
    // Items that do not fit into the queue of the demo do not matter here: every rank has steps regardless.
    demo.arg(&file).output().expect("pulsetrain can be started");
    let url = html_of(&folder, &[&file]);
    let ask = [
        "document.querySelectorAll('#ranks tbody tr').length",
        "document.querySelector('#ranks canvas').getAttribute('aria-label')",
        "document.querySelector('#ranks').scrollIntoView()",
    ];
    let wanted = json!({"url": url, "until": DRAWN, "ask": ask, "width": 1200, "height": 560});
    let seen = look_and_draw(&judge, "64-ranks", wanted);
    assert_eq!(seen[0], 64);
    assert!(
        seen[1].as_str().is_some_and(|label| label.contains("64 ranks")),
        "{}",
        seen[1]
    );
}

#[test]
fn a_hundred_runs_are_listed_and_filtered() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let folder = Folder::new();
    let lines: String = (0..100)
        .map(|run| run_of(&format!("r{run:02}"), 50, |step| f64::from(run) + step as f64))
        .collect();
    let filter = "document.querySelector('#filter')";
    let filtered = "(() => { const input = document.querySelector('#filter'); input.value = 'run r42'; input.dispatchEvent(new Event('input')); return document.querySelectorAll('.run').length; })()";
    let ask = [
        "document.querySelectorAll('.run').length",
        filtered,
        &format!("{filter}.value = ''; {filter}.dispatchEvent(new Event('input'))"),
    ];
    let url = page_of(&folder, &lines);
    let wanted = json!({"url": url, "until": DRAWN, "ask": ask, "width": 1000, "height": 480});
    let seen = look_and_draw(&judge, "hundred-runs", wanted);
    assert_eq!(seen[..2], [json!(100), json!(1)]);
}

#[test]
fn hour_at_ten_steps_per_second_is_drawn_from_first_to_last_step() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let folder = Folder::new();
    // A spike of one step must survive the downsampling of points.
    let url = page_of(
        &folder,
        &run_of("hour", 36_000, |step| {
            if step == 12_345 {
                50.0
            } else {
                2.0 + 1.0 / (1.0 + step as f64 / 500.0)
            }
        }),
    );
    let label = "document.querySelector('#training canvas').chart.series[0].series";
    let ask = [
        &format!("Math.max(...{label}.hi)"),
        &format!("{label}.s[0]"),
        &format!("{label}.s[{label}.s.length - 1]"),
        &format!("{label}.s.length"),
    ];
    let wanted = json!({"url": url, "until": DRAWN, "ask": ask, "width": 1200, "height": 660});
    let seen = look_and_draw(&judge, "hour", wanted);
    assert_eq!((seen[0].as_f64(), &seen[2]), (Some(50.0), &json!(35_999)));
    assert!(
        seen[1].as_u64() < Some(100) && seen[3].as_u64() < Some(4_200),
        "{seen:?}"
    );
}

#[test]
fn page_without_a_run_shows_a_waiting_message() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let agent = Agent::start("");
    let shown =
        "[...document.querySelectorAll('.empty')].some(empty => !empty.hidden && empty.offsetHeight > 0)";
    let ask = [
        "document.querySelector('.empty').textContent",
        "document.querySelectorAll('#body canvas').length",
    ];
    let wanted = json!({"url": agent.url(), "until": shown, "ask": ask, "width": 1200, "height": 640});
    let seen = look_and_draw(&judge, "no-run", wanted);
    assert!(
        seen[0]
            .as_str()
            .is_some_and(|text| text.contains("Waiting for a run") && text.contains("pulsetrain demo"))
    );
}

#[test]
fn keys_move_between_runs_and_axes() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let folder = Folder::new();
    let lines: String = ["a", "b", "c"]
        .iter()
        .map(|id| run_of(id, 50, |step| step as f64))
        .collect();
    let press = |key: &str| {
        format!(
            "(document.activeElement || document.body).dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))"
        )
    };
    let now = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(document.querySelectorAll('.run[aria-selected=\"true\"]')[0].dataset.id))))";
    let axis = "document.querySelector('[data-x=\"time\"]').getAttribute('aria-pressed')";
    let seen = look(
        &judge,
        &page_of(&folder, &lines),
        DRAWN,
        &[
            now,
            &press("j"),
            now,
            &press("k"),
            now,
            &press("t"),
            axis,
            &press("?"),
            "document.querySelector('#helpbox').open",
        ],
    );
    let (first, second, third) = (&seen[0], &seen[2], &seen[4]);
    assert!(first != second && first == third, "{seen:?}");
    assert_eq!((&seen[6], &seen[8]), (&json!("true"), &json!(true)));
}

#[test]
fn text_of_a_run_is_displayed_and_never_executed() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let folder = Folder::new();
    assert_harmless(&look(&judge, &page_of(&folder, &hostile_run()), DRAWN, &HARM));
}

#[test]
fn next_rank_continues_the_curve_of_an_ended_rank_with_a_gap_and_a_marker() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let folder = Folder::new();
    let loss = "document.querySelector('#training canvas').chart.series[0].series";
    let ask = [
        &format!("{loss}.v"),
        &format!("{loss}.changes.length"),
        "document.querySelector('#training canvas').chart.marks.filter(mark => mark.text.startsWith('rank')).map(mark => [mark.text, mark.step])",
        "[...document.querySelectorAll('.tile')].find(tile => tile.textContent.startsWith('Loss')).querySelector('.big').textContent",
    ];
    let seen = look(
        &judge,
        &page_of(&folder, &run_that_loses_rank_0("a", 20)),
        DRAWN,
        &ask,
    );
    let losses: Vec<i64> = [[1; 20], [2; 20]].concat();
    assert_eq!(
        seen,
        [
            json!(losses),
            json!(1),
            json!([["rank 1 continues", 20]]),
            json!("2"),
        ]
    );
}
