//! Opens the page in a real Chromium, which can also take a screenshot.

use std::{path::Path, process::Command};

use pulsetrain_tests::{Folder, wait_until};
use serde_json::{Value, json};

use crate::page::world::HOSTILE;

/// A condition: the page has drawn a run.
pub(crate) const DRAWN: &str = "document.documentElement.dataset.ready === '1'";

/// A condition: the chart of the loss is drawn, which happens in a frame after [`DRAWN`], when the browser has detected that it
/// is visible. It reads no pixels, because Chromium warns about repeated reads of a canvas.
pub(crate) const LOSS_DRAWN: &str = "(() => { const canvas = document.querySelector('#training canvas'); \
    return document.documentElement.dataset.ready === '1' && canvas !== null && canvas.chart.isStale === false && Boolean(canvas.chart.box); })()";

/// Counts the pixels of the color of a NaN mark in the chart of the loss.
pub(crate) const RED_PIXELS: &str = "(() => { const canvas = document.querySelector('#training canvas'); const pen = canvas.getContext('2d'); \
    const data = pen.getImageData(0, 0, canvas.width, canvas.height).data; let red = 0; \
    for (let at = 0; at < data.length; at += 4) if (data[at] > 190 && data[at + 1] < 90 && data[at + 2] < 90 && data[at + 3] > 200) red++; return red; })()";

/// Returns a condition: the page is connected, and `condition` holds for the curve `loss` and for `name`, the name of the run.
pub(crate) fn is_live(condition: &str) -> String {
    format!(
        "(() => {{ const canvas = document.querySelector('#training canvas'); if (!canvas) return false; \
         const loss = canvas.chart.series[0].series, name = document.querySelector('h1 span').textContent; \
         return document.querySelector('#live').textContent === 'Live' && {condition}; }})()"
    )
}

/// Expressions for the effects that a text of a run must not have, and for the text of the page.
pub(crate) const HARM: [&str; 4] = [
    "window.hacked === undefined",
    "document.querySelectorAll('img').length",
    // Text with bidirectional control characters is in elements that isolate them from the text that follows.
    "[...document.querySelectorAll('body *')].filter(element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.includes('\\u202e')) && element.tagName !== 'SCRIPT') \
     .every(element => { const style = getComputedStyle(element); return style.unicodeBidi === 'isolate' || style.display !== 'inline'; })",
    "document.body.textContent",
];

#[track_caller]
pub(crate) fn assert_harmless(seen: &[Value]) {
    assert_eq!(seen[..3], [json!(true), json!(0), json!(true)]);
    let shown = seen[3].as_str().expect("text").matches(HOSTILE).count();
    assert!(shown >= 3, "name, verdict and label are shown: {shown} times");
}

/// Opens a page and returns the values of the expressions.
///
/// # Panics
///
/// If the page logs or throws an error.
pub(crate) fn look(judge: &Path, url: &str, until: &str, ask: &[&str]) -> Vec<Value> {
    answers(judge, &json!({"url": url, "until": until, "ask": ask}))
}

/// As [`look`]; saves a screenshot of the page, unless its name is empty, in the folder of `PULSETRAIN_PICTURES`.
pub(crate) fn look_and_draw(judge: &Path, picture: &str, mut wanted: Value) -> Vec<Value> {
    let folder = std::env::var_os("PULSETRAIN_PICTURES").filter(|_| !picture.is_empty());
    if let Some(folder) = folder {
        // Tests run in the folder of their package.
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent");
        let file = repository.join(folder).join(format!("{picture}.png"));
        wanted["shot"] = json!(file);
    }
    answers(judge, &wanted)
}

fn answers(judge: &Path, wanted: &Value) -> Vec<Value> {
    let output = Command::new(judge)
        .arg(wanted.to_string())
        .output()
        .expect("the judge can be started");
    let (url, errors) = (&wanted["url"], String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{url}: {errors}");
    let seen: Value = serde_json::from_slice(&output.stdout).expect("the judge prints JSON");
    assert_eq!(seen["errors"], json!([]), "{url}");
    seen["answers"].as_array().expect("answers").clone()
}

/// Opens a page whose server is unavailable at times: calls each action after the page has reached its condition.
pub(crate) fn look_while<'a>(
    judge: &Path,
    picture: &str,
    mut wanted: Value,
    first: Vec<(String, Box<dyn FnOnce() + 'a>)>,
) -> Vec<Value> {
    let folder = Folder::new();
    let file = |place: usize| folder.path(&place.to_string());
    let reached = first.iter().enumerate();
    let reached: Vec<Value> = reached
        .map(|(place, (until, _))| json!({"until": until, "done": file(place)}))
        .collect();
    wanted["first"] = reached.into();
    wanted["outage"] = true.into();
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| look_and_draw(judge, picture, wanted));
        for (place, (until, then)) in first.into_iter().enumerate() {
            wait_until(&until, || file(place).exists() || looking.is_finished());
            if looking.is_finished() {
                break;
            }
            then();
        }
        looking
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
