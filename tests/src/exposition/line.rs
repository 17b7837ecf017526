//! One line of a text format.

use super::{ExposedSample, is_legacy_label, is_legacy_name};

/// A parsed line.
pub(super) enum Line {
    Comment { name: String, comment: Comment },
    Sample(ExposedSample),
}

/// Metadata of a family.
pub(super) enum Comment {
    Help,
    Type(String),
    Unit(String),
}

impl Comment {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Help => "HELP",
            Self::Type(_) => "TYPE",
            Self::Unit(_) => "UNIT",
        }
    }
}

/// Parses a line without its line end.
pub(super) fn read(line: &str, open_metrics: bool, utf8: bool) -> Result<Line, String> {
    match line.strip_prefix("# ") {
        Some(comment) => read_comment(comment, open_metrics, utf8),
        None if line.starts_with('#') => Err("a comment without a space".to_owned()),
        None => Cursor(line).sample(open_metrics, utf8).map(Line::Sample),
    }
}

fn read_comment(comment: &str, open_metrics: bool, utf8: bool) -> Result<Line, String> {
    let (word, rest) = comment.split_once(' ').ok_or("a comment of one word")?;
    let mut cursor = Cursor(rest);
    let name = match cursor.peek() {
        Some('"') => cursor.quoted_name(utf8)?,
        _ => cursor.until(&[' ']).to_owned(),
    };
    if !utf8 && !is_legacy_name(&name) || name.is_empty() {
        return Err(format!("the name {name:?}"));
    }
    let text = match cursor.0 {
        "" => "",
        rest => rest.strip_prefix(' ').ok_or("no space after the name")?,
    };
    let comment = match word {
        "HELP" => {
            let escapes: &[char] = if open_metrics {
                &['\\', 'n', '"']
            } else {
                &['\\', 'n']
            };
            unescape(text, escapes)?;
            Comment::Help
        }
        "TYPE" => {
            let known: &[&str] = match open_metrics {
                true => &[
                    "counter",
                    "gauge",
                    "histogram",
                    "summary",
                    "unknown",
                    "info",
                    "stateset",
                ],
                false => &["counter", "gauge", "histogram", "summary", "untyped"],
            };
            match known.contains(&text) {
                true => Comment::Type(text.to_owned()),
                false => return Err(format!("the type {text:?}")),
            }
        }
        "UNIT" if open_metrics && !text.is_empty() => Comment::Unit(text.to_owned()),
        _ => return Err(format!("a comment of {word:?}")),
    };
    Ok(Line::Comment { name, comment })
}

/// The remaining text of a line.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn sample(mut self, open_metrics: bool, utf8: bool) -> Result<ExposedSample, String> {
        let mut sample = ExposedSample::default();
        if self.peek() != Some('{') {
            sample.name = self.until(&['{', ' ']).to_owned();
            if !is_legacy_name(&sample.name) {
                return Err(format!("the name {:?}", sample.name));
            }
        }
        if self.peek() == Some('{') {
            let (name, labels) = self.braces(utf8)?;
            match (sample.name.is_empty(), name) {
                (true, Some(name)) => sample.name = name,
                (false, None) => {}
                (true, None) => return Err("no name".to_owned()),
                (false, Some(_)) => return Err("two names".to_owned()),
            }
            sample.labels = labels;
        }
        self.expect(' ')?;
        sample.value = number(self.until(&[' ']))?;
        if self.0.is_empty() {
            return Ok(sample);
        }
        let rest = self.0.strip_prefix(" # ").filter(|_| open_metrics);
        let mut rest = Cursor(rest.ok_or("something after the value")?);
        let (name, labels) = rest.braces(utf8)?;
        let characters = |(name, value): &(String, String)| name.chars().count() + value.chars().count();
        if name.is_some() || labels.iter().map(characters).sum::<usize>() > 128 {
            return Err("the labels of the exemplar".to_owned());
        }
        sample.exemplar = Some(labels);
        rest.expect(' ')?;
        number(rest.until(&[' ']))?;
        if !rest.0.is_empty() {
            rest.expect(' ')?;
            let time = number(rest.until(&[' ']))?;
            if !time.is_finite() || !rest.0.is_empty() {
                return Err("the time of the exemplar".to_owned());
            }
        }
        Ok(sample)
    }

    /// Parses the text between braces: a quoted name of the metric, and labels.
    #[allow(clippy::type_complexity, reason = "the name and the labels of a sample")]
    fn braces(&mut self, utf8: bool) -> Result<(Option<String>, Vec<(String, String)>), String> {
        self.expect('{')?;
        let mut name = None;
        let mut labels: Vec<(String, String)> = Vec::new();
        let mut is_first = true;
        while self.peek() != Some('}') {
            if !std::mem::replace(&mut is_first, false) {
                self.expect(',')?;
            }
            let is_quoted = self.peek() == Some('"');
            let label = match is_quoted {
                true => self.quoted_name(utf8)?,
                false => self.until(&['=', ',', '}']).to_owned(),
            };
            if is_quoted && self.peek() != Some('=') && name.is_none() && labels.is_empty() {
                name = Some(label);
                continue;
            }
            if !is_quoted && !is_legacy_label(&label) {
                return Err(format!("the label {label:?}"));
            }
            if label.is_empty() || label == "__name__" || labels.iter().any(|(other, _)| *other == label) {
                return Err(format!("the label {label:?}, which is reserved or there twice"));
            }
            self.expect('=')?;
            labels.push((label, self.quoted()?));
        }
        self.expect('}')?;
        Ok((name, labels))
    }

    fn quoted_name(&mut self, utf8: bool) -> Result<String, String> {
        let name = self.quoted()?;
        match utf8 && !name.is_empty() {
            true => Ok(name),
            false => Err(format!("the name {name:?} in quotes")),
        }
    }

    fn quoted(&mut self) -> Result<String, String> {
        self.expect('"')?;
        let mut is_escaped = false;
        let end = self.0.find(|c: char| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        let end = end.ok_or("a quote that does not end")?;
        let text = unescape(&self.0[..end], &['\\', 'n', '"'])?;
        self.0 = &self.0[end + 1..];
        Ok(text)
    }

    fn peek(&self) -> Option<char> {
        self.0.chars().next()
    }

    fn expect(&mut self, character: char) -> Result<(), String> {
        let rest = self.0.strip_prefix(character);
        self.0 = rest.ok_or_else(|| format!("no {character:?} before {:?}", self.0))?;
        Ok(())
    }

    fn until(&mut self, ends: &[char]) -> &'a str {
        let (text, rest) = self.0.split_at(self.0.find(ends).unwrap_or(self.0.len()));
        self.0 = rest;
        text
    }
}

fn unescape(text: &str, escapes: &[char]) -> Result<String, String> {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next().filter(|escaped| escapes.contains(escaped)) {
                Some('n') => plain.push('\n'),
                Some(other) => plain.push(other),
                None => return Err("an escape that is not known".to_owned()),
            },
            '"' if escapes.contains(&'"') => return Err("a quote that is not escaped".to_owned()),
            other => plain.push(other),
        }
    }
    Ok(plain)
}

/// Parses a number that both Go and OpenMetrics allow: no `infinity`, no hexadecimal digits.
fn number(text: &str) -> Result<f64, String> {
    match text {
        "NaN" => return Ok(f64::NAN),
        "+Inf" => return Ok(f64::INFINITY),
        "-Inf" => return Ok(f64::NEG_INFINITY),
        _ => {}
    }
    let is_plain = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    let number = text.parse().ok().filter(|_| text.chars().all(is_plain));
    number.ok_or_else(|| format!("the number {text:?}"))
}
