//! Builds long inputs from the short samples of the corpus. Each repetition is later, and has other decimals.

use std::{fs, path::Path, sync::LazyLock};

use jiff::{SignedDuration, civil::DateTime};
use regex::bytes::Regex;

/// The default interval between repetitions. No sample is longer.
pub(crate) const LATER_SECS: i64 = 120;

/// Seconds since 1970 that begin any finer time too, dates, absl's dates without a year, and decimal places.
static VARYING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?-u)(?P<unix>179\d{7})|(?P<date>2026-\d\d-\d\d[ T]\d\d:\d\d:\d\d)|(?P<absl>\b[IWEF]\d{4} \d\d:\d\d:\d\d)|\d\.(?P<places>\d+)",
    )
    .unwrap()
});

/// The part of a sample that is repeated.
pub(crate) struct Repeated {
    /// The file in the corpus.
    pub(crate) file: &'static str,
    /// A text in the first line of the part.
    pub(crate) from: &'static str,
    /// A text in the first line after the part. Without one, the part ends with the file.
    pub(crate) until: &'static str,
    /// Separates two repetitions.
    pub(crate) separator: &'static str,
    /// The interval between repetitions.
    pub(crate) later_secs: i64,
}

/// The parts of the input that change in a repetition.
enum Varying {
    Unix(usize, i64),
    Date(usize, DateTime, &'static str),
    Places(usize, usize),
}

impl Repeated {
    /// An input of about `size` bytes, the same at every call.
    pub(crate) fn input(&self, size: usize) -> Vec<u8> {
        let sample = sample(self.file);
        let text = String::from_utf8_lossy(&sample);
        let line_with = |what: &str, from: usize| {
            let found = text[from..].find(what).map(|at| from + at)?;
            Some(text[..found].rfind(['\n', '\r']).map_or(0, |end| end + 1))
        };
        let start = line_with(self.from, 0).unwrap();
        let end = Some(self.until).filter(|until| !until.is_empty());
        let end = end.map_or(text.len(), |until| line_with(until, start).unwrap());
        let body = text.as_bytes()[start..end].trim_ascii_end();
        let mut input = text.as_bytes()[..start].to_vec();
        let times = (size / body.len()).max(1);
        repeat(body, times, self.later_secs, |number, body| {
            if number > 0 {
                input.extend_from_slice(self.separator.as_bytes());
            }
            input.extend_from_slice(body);
        });
        input.push(b'\n');
        input.extend_from_slice(&text.as_bytes()[end..]);
        input
    }
}

/// A file of the corpus.
pub(crate) fn sample(file: &str) -> Vec<u8> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    fs::read(corpus.join(file)).unwrap()
}

/// Calls `take` with the bytes `times` times, each time with its number, later times and other digits.
pub(crate) fn repeat(bytes: &[u8], times: usize, later_secs: i64, mut take: impl FnMut(usize, &[u8])) {
    let varying: Vec<Varying> = VARYING
        .captures_iter(bytes)
        .map(|found| varying(&found))
        .collect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut copy = bytes.to_vec();
    for number in 0..times {
        for varying in &varying {
            varying.write(number as i64 * later_secs, &mut random, &mut copy);
        }
        take(number, &copy);
    }
}

fn varying(found: &regex::bytes::Captures<'_>) -> Varying {
    let text = |range: std::ops::Range<usize>| {
        String::from_utf8(found.get(0).unwrap().as_bytes()[range].to_vec()).unwrap()
    };
    let start = found.get(0).unwrap().start();
    if found.name("unix").is_some() {
        Varying::Unix(start, text(0..10).parse().unwrap())
    } else if found.name("date").is_some() {
        let form = if text(10..11) == "T" {
            "%Y-%m-%dT%H:%M:%S"
        } else {
            "%Y-%m-%d %H:%M:%S"
        };
        Varying::Date(start, DateTime::strptime(form, text(0..19)).unwrap(), form)
    } else if found.name("absl").is_some() {
        // Before its initialisation absl writes `I0000 00:00:<Unix time>`, which is not a date.
        let date = DateTime::strptime("%Y %m%d %H:%M:%S", format!("2026 {}", text(1..14)));
        date.map_or(Varying::Places(start, 0), |date| {
            Varying::Date(start + 1, date, "%m%d %H:%M:%S")
        })
    } else {
        let places = found.name("places").unwrap();
        Varying::Places(places.start(), places.len())
    }
}

impl Varying {
    fn write(&self, later_secs: i64, random: &mut fastrand::Rng, bytes: &mut [u8]) {
        let mut put =
            |start: usize, text: String| bytes[start..start + text.len()].copy_from_slice(text.as_bytes());
        match self {
            Self::Unix(start, secs) => put(*start, (secs + later_secs).to_string()),
            Self::Date(start, date, form) => {
                let later = date.saturating_add(SignedDuration::from_secs(later_secs));
                put(*start, later.strftime(form).to_string());
            }
            Self::Places(start, len) => {
                bytes[*start..start + len].fill_with(|| b'0' + random.u8(..10));
            }
        }
    }
}
