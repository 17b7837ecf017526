//! Finds the number in a printed array or object of one number: `tensor(2.5, device='cuda:0')`, `Decimal('2.5')`,
//! `<tf.Tensor: shape=(), dtype=float32, numpy=2.5>`, `Tensor(shape=[1], dtype=float32, [2.5])`.

use pulsetrain_mapping::number_text;

/// The beginnings of the last word of the names of such objects, in lower case.
const NAMES: [&str; 9] = [
    "tensor",
    "array",
    "ndarray",
    "devicearray",
    "float",
    "bfloat",
    "int",
    "decimal",
    "scalar",
];

/// The text that PyTorch prints before a parameter.
const PARAMETER: &str = "Parameter containing";

/// The key of the number in an eager tensor of TensorFlow.
const NUMPY: &str = "numpy=";

/// Returns the array that has its first number at `start`: the end of the text before it, its number if it has only one, and its
/// end.
pub(super) fn array(text: &str, start: usize) -> Option<(usize, Option<f64>, usize)> {
    let before = &text[..start];
    let (open, close) = before
        .match_indices(['(', '<'])
        .find_map(|(at, bracket)| match bracket {
            "(" => Some((at, name_start(&before[..at])?)),
            _ => eager_name(&before[at + 1..]).then_some((at, at)),
        })?;
    let (bracket, label_end) = (open, close);
    let end = bracket + closing(&text[bracket..])?;
    let inside = &text[bracket + 1..end];
    let number = match text[bracket..].starts_with('<') {
        true => inside.split_once(NUMPY).and_then(|(_, number)| scalar(number)),
        false => scalar_argument(inside),
    };
    let label = before[..label_end].trim_end().trim_end_matches(':').trim_end();
    let label_end = label.strip_suffix(PARAMETER).map_or(label_end, str::len);
    Some((label_end, number, end + 1))
}

/// Returns the offset of the name of an array at the end of a text.
fn name_start(before: &str) -> Option<usize> {
    let name =
        before.trim_end_matches(|letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_'));
    is_name(&before[name.len()..]).then_some(name.len())
}

fn is_name(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let word = last.trim_end_matches(|letter: char| letter.is_ascii_digit());
    NAMES.contains(&word)
}

/// Returns whether a text after `<` begins with the name of an array and a colon.
fn eager_name(text: &str) -> bool {
    text.split_once(':').is_some_and(|(name, _)| is_name(name))
}

/// Returns the offset of the bracket that closes the first one.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.bytes().position(|byte| {
        match byte {
            b'(' | b'[' | b'<' => depth += 1,
            b')' | b']' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })
}

/// Returns the number among the arguments of a call: the first one, or else a list after named ones.
fn scalar_argument(arguments: &str) -> Option<f64> {
    let first = arguments.split(", ").next().unwrap_or_default();
    let is_list = first.matches('[').count() > first.matches(']').count();
    let first = if is_list { "" } else { first };
    let last = || {
        arguments
            .rsplit(", ")
            .next()
            .filter(|last| last.trim_start().starts_with('['))
    };
    scalar(first).or_else(|| scalar(last()?))
}

/// Parses a number in any brackets and quotes.
fn scalar(text: &str) -> Option<f64> {
    number_text::any(text.trim_matches(|letter: char| letter.is_whitespace() || "[]()'\",".contains(letter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_one_number_are_that_number_and_others_are_none() {
        for (text, first, label, number) in [
            ("loss: tensor(2.5, device='cuda:0') x", "2.5", "loss: ", Some(2.5)),
            ("loss=np.float64(-0.5)", "-0.5", "loss=", Some(-0.5)),
            ("a: tf.Tensor([[3.5]], shape=(1, 1))", "3.5", "a: ", Some(3.5)),
            (
                "l: Tensor(shape=[1], place=Place(gpu:0), [7.5])",
                "1]",
                "l: ",
                Some(7.5),
            ),
            (
                "l: <tf.Tensor: shape=(1,), dtype=float32, numpy=array([4.5])>",
                "1,",
                "l: ",
                None,
            ),
            ("l: <tf.Tensor: shape=(), numpy=4.5>", "4.5", "l: ", Some(4.5)),
            ("w: Parameter containing: tensor([6.5])", "6.5", "w: ", Some(6.5)),
            ("w: tensor([1.5, 2.5])", "1.5", "w: ", None),
        ] {
            let found = array(text, text.find(first).unwrap());
            let found = found.map(|(end, found, _)| (&text[..end], found));
            assert_eq!(found, Some((label, number)), "{text}");
        }
        assert_eq!(array("mean(2.5)", 5), None);
        assert_eq!(array("loss (2.5)", 6), None);
    }
}
