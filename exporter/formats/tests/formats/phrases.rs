//! Generated lines of a log: metric words x qualifiers x separators x numbers. The expectation is a table of this file, which
//! shares no code with the reader. A number is under the metric of its complete phrase, or under none.
//!
//! `PHRASES=100000 cargo test --workspace --all-features --locked --test formats -- phrases` is a longer run, and `PHRASES_SEED`
//! selects another one.

use std::env;

use fastrand::Rng;

use crate::Imported;

/// The default number of logs that are drawn.
const LOGS: u64 = 10_000;

/// A measured quantity: the words for it, the metric of training, and that of an evaluation.
struct Quantity {
    words: &'static [&'static str],
    metric: &'static str,
    of_evaluation: &'static str,
    /// The largest value.
    most: f64,
}

const QUANTITIES: [Quantity; 13] = [
    quantity(&["loss", "Loss", "LOSS"], "train.loss", "eval.loss", 9.0),
    quantity(
        &["accuracy", "acc", "Acc"],
        "train.accuracy",
        "eval.accuracy",
        0.9,
    ),
    quantity(
        &["grad norm", "Grad Norm", "gradient norm"],
        "train.grad_norm",
        "",
        90.0,
    ),
    quantity(
        &["step time", "Iter Time", "batch time"],
        "train.step.duration",
        "",
        9.0,
    ),
    quantity(
        &["tokens per second", "tok/s", "tokens/sec"],
        "train.throughput.tokens",
        "",
        9000.0,
    ),
    quantity(
        &["samples/s", "samples per second"],
        "train.throughput.samples",
        "",
        900.0,
    ),
    quantity(&["mfu", "MFU"], "train.mfu", "", 0.9),
    quantity(&["reward", "Reward"], "rl.trajectory_reward", "", 90.0),
    quantity(&["kl", "KL"], "rl.kl", "", 0.9),
    quantity(&["entropy"], "rl.entropy", "", 9.0),
    quantity(
        &["param norm", "Weight Norm", "parameter norm"],
        "train.param_norm",
        "",
        90.0,
    ),
    quantity(&["forward time", "Fwd Time"], "perf.forward_time", "", 9.0),
    quantity(
        &["iterations per second", "steps/s", "it/s"],
        "train.throughput.steps",
        "",
        90.0,
    ),
];

const fn quantity(
    words: &'static [&'static str],
    metric: &'static str,
    of_evaluation: &'static str,
    most: f64,
) -> Quantity {
    Quantity {
        words,
        metric,
        of_evaluation,
        most,
    }
}

/// Words that leave a quantity as it is.
const NEUTRAL: [&str; 2] = ["", "train "];

/// Words that may leave a quantity as it is, or make it one without a metric.
const MEANS: [&str; 4] = ["mean ", "avg ", "Average ", "smoothed "];

/// Words of an evaluation.
const EVALUATION: [&str; 9] = [
    "val ",
    "eval ",
    "test ",
    "Validation ",
    "Val ",
    "dev ",
    "valid ",
    "held-out ",
    "Evaluation ",
];

/// Words before a quantity that make it another one.
const BEFORE: [&str; 47] = [
    "max ",
    "Max ",
    "min ",
    "best ",
    "Best ",
    "worst ",
    "median ",
    "p99 ",
    "p50 ",
    "target ",
    "initial ",
    "previous ",
    "env ",
    "Host ",
    "compile ",
    "rollout ",
    "warmup ",
    "checkpoint ",
    "critic ",
    "Critic ",
    "teacher ",
    "ref ",
    "aux ",
    "frozen ",
    "decode ",
    "prefill ",
    "data ",
    "log ",
    "top-5 ",
    "expected ",
    "Number of ",
    "gen ",
    "per-token ",
    "Total env ",
    "lowest ",
    "highest ",
    "p95 ",
    "idle ",
    "sync ",
    "student ",
    "discriminator ",
    "baseline ",
    "old ",
    "allreduce ",
    "epoch ",
    "unclipped ",
    "last ",
];

/// Words after a quantity that make it another one.
const AFTER: [&str; 19] = [
    " std",
    " max",
    " min",
    " p99",
    " variance",
    " coef",
    " weight",
    " target",
    " limit",
    " delta",
    " of critic",
    " threshold",
    " per epoch",
    " per token",
    " of teacher",
    " ratio",
    " range",
    " ema",
    " budget",
];

/// Phrases that end or begin with a word for the step, the epoch or a time, and are something else.
const COUNTS: [&str; 12] = [
    "steps per epoch",
    "time per epoch",
    "best epoch",
    "samples per epoch",
    "episode steps",
    "batches per epoch",
    "env steps per update",
    "warmup steps",
    "save interval steps",
    "time since checkpoint",
    "checkpoint time",
    "epochs without improvement",
];

/// Phrases that have a metric of their own, with that metric.
const OTHERS: [(&str, &str); 9] = [
    ("critic loss", "rl.value_loss"),
    ("aux loss", "train.loss_component"),
    ("teacher loss", "train.loss_component"),
    ("ref loss", "train.loss_component"),
    ("target loss", "train.loss_component"),
    ("loss weight", "train.loss_weight"),
    ("student loss", "train.loss_component"),
    ("loss ema", "train.smoothed.loss"),
    ("epoch loss", "train.loss"),
];

/// The text before, between and after a phrase and its number.
const FORMS: [[&str; 3]; 22] = [
    ["", ": ", ""],
    ["", "=", ""],
    ["", " = ", ""],
    ["", " ", ""],
    ["", " : ", ""],
    ["", "\t", ""],
    ["", " -> ", ""],
    ["", " => ", ""],
    ["[", " ", "]"],
    ["[", ": ", "]"],
    ["", " (", ")"],
    ["<", ": ", ">"],
    ["* ", ": ", ""],
    ["", ":", ""],
    ["", "= ", ""],
    ["", ":\t", ""],
    ["(", ": ", ")"],
    ["- ", ": ", ""],
    ["• ", ": ", ""],
    ["\"", "\": ", ""],
    ["'", "': ", ""],
    ["", " ≈ ", ""],
];

/// The text before and after the digits of a number.
const NUMBERS: [[&str; 2]; 21] = [
    ["", ""],
    ["", ""],
    ["", ""],
    ["+", ""],
    ["", "*"],
    ["", "±0.01"],
    ["**", "**"],
    ["tensor(", ")"],
    ["np.float64(", ")"],
    ["tf.Tensor(", ", shape=(), dtype=float32)"],
    ["", "↓"],
    ["~", ""],
    ["", "e+00"],
    ["", "E0"],
    ["0", ""],
    ["[", "]"],
    ["tensor([", "])"],
    ["tensor(", ", device='cuda:0')"],
    ["Array(", ", dtype=float32)"],
    ["`", "`"],
    ["≈", ""],
];

#[derive(Debug)]
enum Expected {
    /// The values are under this metric.
    Metric(&'static str),
    /// The values are under no metric but these and `train.custom`.
    NoneBut(Vec<&'static str>),
}

struct Draw {
    phrase: String,
    expected: Expected,
    most: f64,
}

fn draw(random: &mut Rng) -> Draw {
    let quantity = &QUANTITIES[random.usize(..QUANTITIES.len())];
    let words = quantity.words[random.usize(..quantity.words.len())];
    let one_of = |words: &[&'static str], random: &mut Rng| words[random.usize(..words.len())];
    let (phrase, expected) = match random.u8(..8) {
        0 | 1 => (
            one_of(&NEUTRAL, random).to_owned() + words,
            Expected::Metric(quantity.metric),
        ),
        2 => {
            let phrase = one_of(&EVALUATION, random).to_owned() + words;
            match quantity.of_evaluation {
                "" => (phrase, Expected::NoneBut(vec!["eval."])),
                metric => (phrase, Expected::Metric(metric)),
            }
        }
        3 | 4 => (
            one_of(&BEFORE, random).to_owned() + words,
            Expected::NoneBut(Vec::new()),
        ),
        5 => (
            one_of(&MEANS, random).to_owned() + words,
            Expected::NoneBut(vec![quantity.metric, "train.smoothed"]),
        ),
        6 => (one_of(&COUNTS, random).to_owned(), Expected::NoneBut(Vec::new())),
        _ => (
            words.to_owned() + one_of(&AFTER, random),
            Expected::NoneBut(Vec::new()),
        ),
    };
    let lower = phrase.to_lowercase();
    let own = OTHERS.iter().filter(|(other, _)| *other == lower);
    let expected = match expected {
        Expected::NoneBut(mut metrics) => {
            metrics.extend(own.map(|(_, metric)| metric));
            Expected::NoneBut(metrics)
        }
        metric => metric,
    };
    Draw {
        phrase,
        expected,
        most: quantity.most,
    }
}

/// The other values of each line.
const PERPLEXITY: f64 = 7.125;
const LEARNING_RATE: f64 = 0.000_375;

fn line(step: u32, phrase: &str, number: &str, [before, between, after]: [&str; 3]) -> String {
    format!(
        "step {step} | ppl {PERPLEXITY} | lr {LEARNING_RATE} | {before}{phrase}{between}{number}{after}\n"
    )
}

fn are_same(found: &[f64], expected: &[f64]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9)
}

#[test]
fn phrases_are_under_the_metric_of_all_their_words_or_under_none() {
    let number =
        |name: &str, default: u64| env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let seed = number("PHRASES_SEED", 34);
    let mut random = Rng::with_seed(seed);
    let mut wrong = Vec::new();
    for _ in 0..number("PHRASES", LOGS) {
        let Draw {
            phrase,
            expected,
            most,
        } = draw(&mut random);
        let form = FORMS[random.usize(..FORMS.len())];
        let [open, close] = NUMBERS[random.usize(..NUMBERS.len())];
        let digits: Vec<String> = (0..3)
            .map(|_| format!("{:.4}", random.f64() * most + 0.0123))
            .collect();
        let values: Vec<f64> = digits
            .iter()
            .map(|digits| digits.parse().expect("a number"))
            .collect();
        let lines = digits
            .iter()
            .zip([10, 20, 30])
            .map(|(digits, step)| line(step, &phrase, &format!("{open}{digits}{close}"), form));
        let log: String = lines.collect();
        let read = Imported::from_text("generic", &log);
        let others = read.values("train.perplexity") == [PERPLEXITY; 3]
            && read.values("train.learning_rate") == [LEARNING_RATE; 3]
            && read.values("train.global_step") == [10.0, 20.0, 30.0];
        let mut under: Vec<&str> = Vec::new();
        for point in &read.points {
            if values.iter().any(|value| are_same(&[point.value], &[*value])) {
                under.push(&point.metric);
            }
        }
        under.dedup();
        let is_right = match &expected {
            Expected::Metric(metric) => are_same(&read.values(metric), &values),
            Expected::NoneBut(metrics) => {
                let may = |found: &&str| {
                    *found == "train.custom" || metrics.iter().any(|metric| found.starts_with(metric))
                };
                under.iter().all(may) && (!under.is_empty() || read.skipped.counts().next().is_some())
            }
        };
        if !others || !is_right {
            wrong.push(format!(
                "{} -> {under:?}, expected {expected:?}",
                log.lines().next().unwrap_or_default()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong, seed {seed}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}

/// The words of an evaluation before its values, and forms of its line: `@E` is the word, `@V` the value, `@S` the step.
const SPLITS: [&str; 12] = [
    "eval",
    "Eval",
    "val",
    "Val",
    "valid",
    "validation",
    "Validation",
    "test",
    "Test",
    "dev",
    "evaluation",
    "holdout",
];
const LINES: [&str; 28] = [
    "@E: loss @V",
    "@E loss: @V",
    "@E loss = @V",
    "[@E] loss @V",
    "[@E] step @S loss @V",
    "[@E] step @S | loss @V",
    "@E | loss @V",
    "@E | step @S | loss @V",
    "@E - loss: @V",
    "@E step @S: loss @V",
    "step @S @E: loss @V",
    "step @S | @E loss @V",
    "step @S, @E_loss=@V",
    "step @S @E/loss: @V",
    "loss/@E: @V",
    "loss_@E: @V",
    "Loss (@E): @V",
    "loss on @E set: @V",
    "loss on the @E set: @V",
    "Final @E loss: @V",
    "@E results: loss=@V",
    "@E metrics: {'loss': @V}",
    "@E: {\"loss\": @V, \"step\": @S}",
    "{\"split\": \"@E\", \"step\": @S, \"loss\": @V}",
    "(@E) loss: @V",
    "Average loss: @V (@E)",
    "=== @E === loss: @V",
    "average @E loss: @V",
];

#[test]
fn values_of_an_evaluation_are_never_of_training() {
    let mut wrong = Vec::new();
    for split in SPLITS {
        for form in LINES {
            let mut log = String::new();
            for step in (10..60).step_by(10) {
                log += &format!("step {step} | loss {}.25 | lr 0.000375\n", step + 1);
                if step % 20 == 0 {
                    let line = form.replace("@E", split).replace("@V", &format!("0.{step}5"));
                    log += &line.replace("@S", &step.to_string());
                    log.push('\n');
                }
            }
            let read = Imported::from_text("generic", &log);
            let losses = read.values("train.loss");
            let is_kept = ["eval.loss", "train.custom"]
                .iter()
                .any(|metric| are_same(&read.values(metric), &[0.205, 0.405]));
            let is_counted = read.skipped.counts().map(|(_, count)| count).sum::<u64>() >= 2;
            if losses != [11.25, 21.25, 31.25, 41.25, 51.25] || !is_kept && !is_counted {
                wrong.push(format!(
                    "{} -> train.loss {losses:?}",
                    log.lines().nth(2).unwrap_or_default()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
