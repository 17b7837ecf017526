//! An open page in a real Chromium while its server is restarted or sends hostile text.

use std::cell::RefCell;

use pulsetrain_tests::{Judge, some_or_return};
use serde_json::json;

use crate::page::{
    agent::Agent,
    look::{HARM, RED_PIXELS, assert_harmless, is_live, look_while},
    world::{Demo, hostile_run, run_of},
};

/// Expressions: whether the curve of the loss has neither a gap nor the mark of one, and the number of marks.
const GAPS: [&str; 3] = [
    "(loss => loss.v.every(Number.isFinite) && !loss.bad.some(Boolean) && new Set(loss.attempts).size === 1 && \
     loss.s.every((step, place) => place === 0 || step === loss.s[place - 1] + 1))(document.querySelector('#training canvas').chart.series[0].series)",
    RED_PIXELS,
    "document.querySelector('#training canvas').chart.marks.filter(mark => mark.text.endsWith('begins') || mark.text.endsWith('continues')).length",
];

#[test]
fn an_open_page_shows_the_points_of_an_agent_that_was_restarted() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let agent = Agent::start("");
    agent.send(&run_of("a", 100, |step| step as f64));
    let wanted = json!({
        "url": agent.url(),
        "until": is_live("loss.s.length === 60 && loss.count === 60"),
        "ask": GAPS,
    });
    let agent = RefCell::new(Some(agent));
    let send = |steps| {
        let agent = agent.borrow();
        let agent = agent.as_ref().expect("the agent runs");
        agent.send(&run_of("a", steps, |step| step as f64));
    };
    // The run keeps its id; the numbers of its series and points restart.
    let restart = || {
        let running = agent.take().map(Agent::restart);
        agent.replace(running);
        send(30);
    };
    let first: Vec<(String, Box<dyn FnOnce()>)> = vec![
        (is_live("loss.s.length === 100"), Box::new(restart)),
        (
            is_live("loss.s.length === 30 && loss.count === 30"),
            Box::new(|| send(60)),
        ),
    ];
    let seen = look_while(&judge, "", wanted, first);
    assert_eq!(seen, [json!(true), json!(0), json!(0)]);
}

#[test]
fn an_open_page_shows_the_run_of_a_demo_that_was_restarted() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let arguments = ["--rate", "5", "--ranks", "4", "--seed"];
    let demo = Demo::start(&[&arguments[..], &["0"]].concat());
    let rows =
        ["ranks", "gpus"].map(|table| format!("document.querySelectorAll('#{table} tbody tr').length"));
    let ask = [
        &GAPS[..],
        &[&rows[0], &rows[1], "document.querySelectorAll('.run').length"],
    ]
    .concat();
    let wanted = json!({
        "url": format!("http://127.0.0.1:{}/", demo.port),
        "until": is_live("name === 'demo-sft-7' && loss.s.length > 30"),
        "ask": ask,
        "width": 1200,
        "height": 800,
    });
    let running = RefCell::new(None);
    let restart = || {
        running.replace(Some(demo.restart(&[&arguments[..], &["7"]].concat())));
    };
    let first: Vec<(String, Box<dyn FnOnce()>)> = vec![(
        is_live("name === 'demo-sft-0' && loss.s.length > 30"),
        Box::new(restart),
    )];
    let seen = look_while(&judge, "restarted", wanted, first);
    assert_eq!(
        seen,
        [json!(true), json!(0), json!(0), json!(4), json!(4), json!(1)]
    );
}

#[test]
fn text_of_a_live_run_is_displayed_and_never_executed() {
    let judge = some_or_return!(Judge::Chromium.require_or_skip());
    let agent = Agent::start("");
    agent.send(&run_of("a", 20, |step| step as f64));
    // The run appears while the page is open, and is selected; then its texts arrive again, as updates.
    let select = "(() => { const run = [...document.querySelectorAll('.run')].find(run => run.dataset.id.includes('hacked')); \
                  if (run && run.getAttribute('aria-selected') !== 'true') run.click(); \
                  return !!run && document.querySelector('h1 span').textContent.includes('hacked') && document.querySelectorAll('.verdict').length === 1; })()";
    let first: Vec<(String, Box<dyn FnOnce()>)> = vec![
        (
            is_live("loss.s.length === 20"),
            Box::new(|| agent.send(&hostile_run())),
        ),
        (
            select.to_owned(),
            Box::new(|| agent.send(&hostile_run().replace("17950000", "17950001"))),
        ),
    ];
    let events = "document.querySelectorAll('#events li').length === 2";
    let wanted = json!({"url": agent.url(), "until": events, "ask": HARM});
    assert_harmless(&look_while(&judge, "", wanted, first));
}
