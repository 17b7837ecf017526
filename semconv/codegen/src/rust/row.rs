//! The rows of the generated tables. rustfmt leaves them as they are, so they get their layout here.

use super::literal;

/// The indent of a row, and of each deeper level.
const INDENT: usize = 4;
/// The width of a line, as in `rustfmt.toml`.
const WIDTH: usize = 110;

/// Returns a table: the call of `name!` with all rows.
pub(super) fn table(name: &str, rows: impl IntoIterator<Item = String>) -> String {
    format!("{name}! {{\n{}}}\n", rows.into_iter().collect::<String>())
}

/// Returns the row of a definition from its lines, without their commas. Empty lines are left out.
pub(super) fn row(name: &str, lines: &[String]) -> String {
    let lines: String = lines
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| format!("{:indent$}{line},\n", "", indent = 2 * INDENT))
        .collect();
    let indent = " ".repeat(INDENT);
    format!("{indent}{} {{\n{lines}{indent}}}\n", literal::constant(name))
}

/// Returns `head` and a bracketed list, in one line if it fits, else with one line per item, so that a new item adds a line.
/// An empty list has no field.
///
/// The list is a field of a row; each level of nested lists has a depth of one more.
pub(super) fn list(depth: usize, head: &str, items: &[String]) -> String {
    one_line(depth, head, items).unwrap_or_else(|| lines(depth, head, items))
}

/// Returns a list of a row like [`list`], but with as many items per line as fit.
pub(super) fn filled_list(head: &str, items: &[String]) -> String {
    let filled = || {
        let mut filled: Vec<String> = Vec::new();
        for item in items {
            match filled.last_mut() {
                Some(line) if 3 * INDENT + line.len() + item.len() + ", ,".len() <= WIDTH => {
                    line.push_str(", ");
                    line.push_str(item);
                }
                _ => filled.push(item.clone()),
            }
        }
        lines(0, head, &filled)
    };
    one_line(0, head, items).unwrap_or_else(filled)
}

/// Returns a list in one line, or `None` if it does not fit.
fn one_line(depth: usize, head: &str, items: &[String]) -> Option<String> {
    if items.is_empty() {
        return Some(String::new());
    }
    let line = format!("{head}[{}]", items.join(", "));
    let fits = (depth + 2) * INDENT + line.chars().count() < WIDTH && !line.contains('\n');
    fits.then_some(line)
}

fn lines(depth: usize, head: &str, items: &[String]) -> String {
    let indent = (depth + 2) * INDENT;
    let items: String = items
        .iter()
        .map(|item| format!("{:inner$}{item},\n", "", inner = indent + INDENT))
        .collect();
    format!("{head}[\n{items}{:indent$}]", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_that_fits_no_line_has_one_line_per_item() {
        let short: Vec<String> = ["A", "B: Required"].map(str::to_owned).into();
        assert_eq!(list(0, "attributes: ", &short), "attributes: [A, B: Required]");

        let long = vec!["A".repeat(60), "B".repeat(60)];
        let expected = format!(
            "attributes: [\n            {},\n            {},\n        ]",
            long[0], long[1]
        );
        assert_eq!(list(0, "attributes: ", &long), expected);
        assert_eq!(filled_list("attributes: ", &long), expected);
        assert_eq!(list(0, "attributes: ", &[]), "");
    }

    #[test]
    fn filled_list_has_lines_of_the_full_width() {
        let long = [48, 47, 48, 47, 48].map(|length| "A".repeat(length));
        let line = format!("            {}, {},\n", long[0], long[1]);
        assert_eq!(line.len(), 110 + 1);
        let expected = format!("attributes: [\n{line}{line}            {},\n        ]", long[4]);
        assert_eq!(filled_list("attributes: ", &long), expected);
    }

    #[test]
    fn row_has_the_name_of_its_constant_and_no_empty_line() {
        let lines = ["name: \"a.b\"", "", "unit: \"s\""].map(str::to_owned);
        let expected = "    A_B {\n        name: \"a.b\",\n        unit: \"s\",\n    }\n";
        assert_eq!(row("a.b", &lines), expected);
    }
}
