//! The words of keys and lines that name a part of the data: training, or an evaluation.

/// Words before values of an evaluation.
const EVALUATION: [&str; 20] = [
    "eval",
    "evaluation",
    "evaluate",
    "evaluating",
    "validating",
    "cv",
    "val",
    "valid",
    "validation",
    "validate",
    "test",
    "testing",
    "dev",
    "holdout",
    "heldout",
    "held-out",
    "evaluator",
    "inference",
    "validator",
    "tester",
];

/// Words before values of training.
const TRAINING: [&str; 3] = ["train", "training", "trainer"];

/// The prefix of the keys of values of an evaluation.
pub const EVAL_PREFIX: &str = "eval ";

/// Returns whether a word names an evaluation; `None` if it names neither one nor training.
pub fn is_evaluation(word: &str) -> Option<bool> {
    match (is_one_of(&EVALUATION, word), is_one_of(&TRAINING, word)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Returns whether a word of a key names an evaluation.
pub fn names_evaluation(key: &str) -> bool {
    splits(key).any(|is_evaluation| is_evaluation)
}

/// Returns whether a word of a key names training.
pub fn names_training(key: &str) -> bool {
    splits(key).any(|is_evaluation| !is_evaluation)
}

/// Returns, for each word of a key that names a split, whether it names an evaluation.
fn splits(key: &str) -> impl Iterator<Item = bool> + '_ {
    let words = key.split(|letter: char| !letter.is_alphanumeric());
    words.filter_map(is_evaluation)
}

/// Returns whether a word is one of these, in any case.
pub fn is_one_of(names: &[&str], word: &str) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case(word))
}
