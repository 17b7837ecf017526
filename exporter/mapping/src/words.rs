//! Words of other languages in printed logs, and their English ones in the dictionary.
//!
//! A word between other letters is replaced if it is complete. Chinese, Japanese and Korean text has no spaces: a run of its
//! letters is replaced if it consists of known words only, so that no unknown word loses its meaning.

use std::{borrow::Cow, collections::HashMap};

use regex::{Captures, Regex};

use crate::{FieldTable, Mapping};

/// The distance of the full-width forms of ASCII from ASCII (Unicode block "Halfwidth and Fullwidth Forms").
const FULL_WIDTH: u32 = 0xfee0;

/// The full-width forms of ASCII that are folded.
const FORMS: std::ops::RangeInclusive<char> = '\u{ff01}'..='\u{ff5e}';

/// Forms that are not folded: they do not quote or escape as those of ASCII do.
const QUOTES: [char; 4] = ['\u{ff02}', '\u{ff07}', '\u{ff3c}', '\u{ff40}'];

/// The space as wide as an ideograph.
const IDEOGRAPHIC_SPACE: char = '\u{3000}';

/// The longest word of a script without spaces, in letters.
const MAX_LETTERS: usize = 8;

/// The English words of counters, whose numbers can be between an ordinal mark and the word: `第 3 轮` is epoch 3.
const COUNTERS: [&str; 4] = ["epoch", "step", "iteration", "batch"];

/// Words by the language of a log.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// The English word of each word of a script without spaces.
    unspaced: HashMap<String, String>,
    /// The English word of each other word, in lower case.
    spaced: HashMap<String, String>,
    /// Any of the other words.
    any: Option<Regex>,
    /// A number between an ordinal mark and a counter.
    ordinal: Option<Regex>,
}

impl Words {
    /// Creates words from pairs of an English word and a word of another language.
    pub(crate) fn new<'w>(pairs: impl Iterator<Item = (&'w str, &'w str)>) -> Self {
        let mut words = Self::default();
        for (english, word) in pairs {
            let map = match word.chars().all(is_unspaced) {
                true => &mut words.unspaced,
                false => &mut words.spaced,
            };
            map.insert(word.to_lowercase(), english.to_owned());
        }
        words.any = alternatives(words.spaced.keys())
            .and_then(|any| Regex::new(&format!("(?i)\\b(?:{any})\\b")).ok());
        let counters = words
            .unspaced
            .iter()
            .filter(|(_, english)| COUNTERS.contains(&english.as_str()))
            .map(|(word, _)| word);
        words.ordinal = alternatives(counters)
            .and_then(|any| Regex::new(&format!("[第제]\\s*([0-9]+(?:\\s*/\\s*[0-9]+)?)\\s*({any})")).ok());
        words
    }

    /// Returns whether no key of a mapping is a word of these: a mapping with the words of its log gets them unchanged.
    pub fn fits(&self, mapping: &Mapping) -> bool {
        let is_unchanged = |text: &str| matches!(self.english(text), Cow::Borrowed(_));
        let tables = std::iter::once(&mapping.table).chain(mapping.records.values());
        let mut keys = tables.flat_map(FieldTable::rows).map(|row| row.keys.text());
        let mut others = mapping.steps.iter().chain(&mapping.time).chain(&mapping.kind);
        keys.all(is_unchanged)
            && others.all(|key| is_unchanged(key))
            && mapping.lines.iter().all(|line| is_unchanged(line.as_str()))
    }

    /// Replaces full-width forms by ASCII, and the words by English ones.
    pub fn english<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = match text.is_ascii() {
            true => Cow::Borrowed(text),
            false => self.unspaced(folded(text)),
        };
        let Some(any) = self.any.as_ref().filter(|any| any.is_match(&text)) else {
            return text;
        };
        let english = |found: &Captures<'_>| {
            let word = found[0].to_lowercase();
            self.spaced.get(&word).cloned().unwrap_or(word)
        };
        Cow::Owned(any.replace_all(&text, english).into_owned())
    }

    /// Replaces runs of the words without spaces.
    fn unspaced<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        if !text.contains(is_unspaced) {
            return text;
        }
        let text = match &self.ordinal {
            Some(ordinal) => ordinal.replace_all(&text, "$2 $1 ").into_owned(),
            None => text.into_owned(),
        };
        let mut english = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(start) = rest.find(is_unspaced) {
            let (before, run) = rest.split_at(start);
            english.push_str(before);
            let end = run.find(|letter| !is_unspaced(letter)).unwrap_or(run.len());
            let (run, after) = run.split_at(end);
            match self.words_of(run) {
                Some(words) => {
                    let is_name = |letter: char| letter.is_alphanumeric() || letter == ')';
                    if english.ends_with(is_name) {
                        english.push(' ');
                    }
                    english.push_str(&words.join(" "));
                    if after.starts_with(is_name) {
                        english.push(' ');
                    }
                }
                None => english.push_str(run),
            }
            rest = after;
        }
        english.push_str(rest);
        Cow::Owned(english)
    }

    /// Returns the English words of a run that consists of known words, the longest first.
    fn words_of(&self, run: &str) -> Option<Vec<&str>> {
        let mut words = Vec::new();
        let mut rest = run;
        while !rest.is_empty() {
            let mut ends: Vec<usize> = rest
                .char_indices()
                .map(|(at, letter)| at + letter.len_utf8())
                .collect();
            ends.truncate(MAX_LETTERS);
            let (end, word) = ends
                .iter()
                .rev()
                .find_map(|end| Some((*end, self.unspaced.get(&rest[..*end])?)))?;
            words.push(word.as_str());
            rest = &rest[end..];
        }
        Some(words)
    }
}

/// Returns the alternatives of a regular expression, the longest first.
fn alternatives<'w>(words: impl Iterator<Item = &'w String>) -> Option<String> {
    let mut words: Vec<String> = words.map(|word| regex::escape(word)).collect();
    words.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    (!words.is_empty()).then(|| words.join("|"))
}

/// Returns whether a letter is of a script without spaces, or of Korean, whose words are compounds.
fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{3005}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// Replaces full-width forms by those of ASCII. A comma, a colon and a semicolon have the space that their form includes, except
/// a colon between the digits of a clock.
fn folded(text: &str) -> Cow<'_, str> {
    let is_form =
        |letter: char| FORMS.contains(&letter) && !QUOTES.contains(&letter) || letter == IDEOGRAPHIC_SPACE;
    if !text.contains(is_form) {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if !is_form(letter) {
            folded.push(letter);
            continue;
        }
        let ascii = match letter {
            IDEOGRAPHIC_SPACE => ' ',
            form => char::from_u32(form as u32 - FULL_WIDTH).unwrap_or(form),
        };
        let is_clock = ascii == ':'
            && folded.ends_with(|last: char| last.is_ascii_digit())
            && letters.peek().is_some_and(|next| next.is_numeric());
        folded.push(ascii);
        if matches!(ascii, ',' | ':' | ';') && !is_clock {
            folded.push(' ');
        }
    }
    Cow::Owned(folded)
}

#[cfg(test)]
mod tests {
    use crate::{DICTIONARY, MappingFile, trainer};

    fn english(text: &str) -> String {
        trainer(DICTIONARY).mapping().words().english(text).into_owned()
    }

    #[test]
    fn runs_of_known_words_are_replaced() {
        for (text, expected) in [
            ("第 3 轮，训练损失：2.31", "epoch 3 , train loss: 2.31"),
            ("第3/10轮 损失=0.5", "epoch 3/10  loss=0.5"),
            ("验证集准确率：９１．５％", "val set accuracy: 91.5%"),
            ("步数（１０）用时2.5秒", "step(10) time 2.5 s"),
            ("速度：120 词/秒", "speed: 120 words/s"),
            // A run with an unknown word stays.
            ("判别器损失：0.7", "判别器损失: 0.7"),
            ("正在加载数据 ...", "正在加载数据 ..."),
            ("時間　１４：０２：１１", "time 14:02:11"),
            (
                "エポック 3 損失 2.5 学習率 0.1",
                "epoch 3 loss 2.5 learning rate 0.1",
            ),
            ("에포크 3, 손실: 2.5", "epoch 3, loss: 2.5"),
            (
                "Schritt 10: Verlust 2,5, Lernrate 1e-4",
                "step 10: loss 2,5, learning rate 1e-4",
            ),
            ("VERLUST=2.5 Verlustfaktor=3", "loss=2.5 Verlustfaktor=3"),
            ("Шаг 10, потеря: 2.5", "step 10, loss: 2.5"),
            ("Époque 3 - perte : 0.5", "epoch 3 - loss : 0.5"),
            ("pérdida de validación: 0.5", "val loss: 0.5"),
            ("step 10 loss 2.5", "step 10 loss 2.5"),
        ] {
            assert_eq!(english(text), expected, "{text}");
        }
    }

    #[test]
    fn words_of_a_mapping_are_not_replaced() {
        let words = trainer(DICTIONARY).mapping().words();
        for (yaml, fits) in [
            ("values: [{key: Verlust, metric: train.loss}]", false),
            ("step: 步数", false),
            ("values: [{key: loss, metric: train.loss}]", true),
        ] {
            let mapping = MappingFile::parse(yaml).unwrap().build().unwrap();
            assert_eq!(words.fits(&mapping), fits, "{yaml}");
        }
    }
}
