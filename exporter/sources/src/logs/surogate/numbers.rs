//! Records of numbers: steps, evaluations, the gauges of GPUs, and what nobody knows. They are nearly all of a log, and are read
//! as templates.

use super::{
    record::{self, Kept, Value},
    tables,
};
use crate::logs::{
    fields,
    row::Row,
    template::{Drawing, Found, Sketch},
    time,
};
use pulsetrain_record::LoggedTime;

/// A record of numbers.
pub(super) type Numbers = Sketch<Says>;

/// What a record of numbers says besides.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Says {
    pub(super) kind: Kind,
    /// The kind in the words of the log.
    pub(super) name: String,
    time: Option<Time>,
    step: Option<Count>,
    /// The number of the GPU whose gauges these are.
    gpu: Option<Count>,
    /// The text that says of what the numbers are.
    pub(super) label: Option<String>,
    /// The places of these fields.
    pub(super) duration_ms: Option<usize>,
    pub(super) step_tokens: Option<usize>,
    /// The places of the fields that no row knows, and the names under which they are kept.
    pub(super) unknown: Vec<(usize, String)>,
    /// The fields that are no numbers.
    pub(super) others: Vec<(String, Kept)>,
}

/// What the numbers of a record are of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Kind {
    Step,
    Eval,
    Moe,
    Gpu,
    Dataset,
    Sol,
    #[default]
    Unknown,
}

impl Kind {
    /// The kind that the log calls so; nothing where such records tell of an event.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "step" => Self::Step,
            "eval" => Self::Eval,
            "moe" => Self::Moe,
            "gpu" => Self::Gpu,
            "dataset" => Self::Dataset,
            "sol" => Self::Sol,
            "cmd" | "option" | "info" | "gpu-model" | "allocator" | "abs-maxes" => return None,
            _ => Self::Unknown,
        })
    }

    fn rows(self) -> &'static [Row] {
        match self {
            Self::Step => tables::STEP,
            Self::Eval => tables::EVAL,
            Self::Moe => tables::MOE,
            Self::Gpu => tables::GPU,
            Self::Dataset => tables::DATASET,
            Self::Sol => tables::SOL,
            Self::Unknown => &[],
        }
    }

    /// The key of the text that says of what the numbers are.
    fn label(self) -> &'static str {
        match self {
            Self::Step => "phase",
            Self::Gpu => "throttle",
            Self::Dataset => "split",
            Self::Eval | Self::Moe | Self::Sol | Self::Unknown => "",
        }
    }
}

/// When a record was written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Time {
    /// On the local day that begins this many nanoseconds after 1970, at the time of the number at this place.
    Clock(u64, usize),
    /// At this time.
    At(LoggedTime),
}

/// A number that is no value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Count {
    /// The number at this place.
    Read(usize),
    Said(i64),
}

impl Sketch<Says> {
    /// When the record was written, as the log prints it.
    pub(super) fn time(&self) -> LoggedTime {
        match self.more.time {
            Some(Time::Clock(day, place)) => LoggedTime::Local(day.saturating_add(self.number(place) as u64)),
            Some(Time::At(time)) => time,
            None => LoggedTime::Utc(0),
        }
    }

    /// The step that it belongs to.
    pub(super) fn step(&self) -> i64 {
        self.count(self.more.step)
    }

    /// The number of the GPU whose gauges these are.
    pub(super) fn gpu(&self) -> i64 {
        self.count(self.more.gpu)
    }

    fn count(&self, count: Option<Count>) -> i64 {
        match count {
            Some(Count::Read(place)) => self.number(place) as i64,
            Some(Count::Said(number)) => number,
            None => 0,
        }
    }
}

/// `{"log": "step", "time": "2026-11-21 00:18:40.989703631", "step": 5, "epoch": 0.25, ...}`; nothing where the text is no
/// record of numbers, or more than one.
pub(super) fn draw(text: &str) -> Option<Numbers> {
    draw_as(Kind::of(record::kind(text)?)?, text)
}

/// The same of a record of which is known what its numbers are of.
pub(super) fn draw_as(kind: Kind, text: &str) -> Option<Numbers> {
    let mut drawing = Drawing::of(text, Says::default());
    drawing.more().kind = kind;
    let len = record::each_field(text, |key, value, text| {
        draw_field(&mut drawing, (key, value), text);
    })
    .ok()?;
    let mut record = drawing.finish(kind.rows());
    record.more.duration_ms = record.place("duration_ms");
    record.more.step_tokens = record.place("step_tokens");
    record.more.unknown = unknown(&record);
    (len == text.len() && record.more.time.is_some()).then_some(record)
}

/// Draws a field. Of a key that comes twice, the first counts; the second is a field that nobody knows.
fn draw_field<'a>(drawing: &mut Drawing<'a, Says>, field: (&'a str, Value<'a>), text: &'a str) {
    let says = drawing.more();
    match field {
        ("log", Value::Text(name)) if says.name.is_empty() => says.name = name.to_owned(),
        ("time", Value::Text(time)) if says.time.is_none() => {
            let drawn = draw_time(drawing, time);
            drawing.more().time = drawn;
        }
        ("step", Value::Int(step)) if says.step.is_none() => {
            let drawn = draw_count(drawing, step, text);
            drawing.more().step = Some(drawn);
        }
        // Of another record with the same text around it, it might be the step.
        ("step", Value::Double(number)) if says.step.is_none() => {
            drawing.constant("step", fields::Value::Number(number));
        }
        ("id", value) if says.kind == Kind::Gpu && says.gpu.is_none() => {
            let number = value.as_f64().unwrap_or_default() as i64;
            let drawn = draw_count(drawing, number, text);
            drawing.more().gpu = Some(drawn);
        }
        // What a GPU can do is the same on all ranks.
        ("rank", _) if says.kind == Kind::Sol => {}
        (key, Value::Text(label)) if key == says.kind.label() && says.label.is_none() => {
            says.label = Some(label.to_owned());
        }
        (key, value) => match value.as_f64() {
            Some(number) => drawing.value(key, fields::Value::Number(number), text),
            None => says.others.push((key.to_owned(), Kept::of(&value))),
        },
    }
}

fn draw_time<'a>(drawing: &mut Drawing<'a, Says>, text: &'a str) -> Option<Time> {
    let at = time::logged(text)?;
    let (day, clock) = time::day_and_clock(text)?;
    let is_local = matches!(at, LoggedTime::Local(_));
    let place = is_local.then(|| drawing.clock(clock)).flatten();
    Some(place.map_or(Time::At(at), |place| Time::Clock(day, place)))
}

fn draw_count<'a>(drawing: &mut Drawing<'a, Says>, number: i64, text: &'a str) -> Count {
    drawing.count(text).map_or(Count::Said(number), Count::Read)
}

fn unknown(record: &Numbers) -> Vec<(usize, String)> {
    let fields = record.fields.iter().enumerate();
    let unknown = fields.filter(|(_, field)| matches!(field.found, Found::Nowhere));
    unknown
        .map(|(place, field)| (place, format!("surogate.{}.{}", record.more.name, field.key)))
        .collect()
}
