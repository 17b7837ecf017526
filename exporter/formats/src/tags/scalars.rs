//! Takes in the numbers of a file, whatever kind of file it is, and records what they mean.

use pulsetrain_otlp::write::{Attribute, Value};
use pulsetrain_semconv::{Instrument, Metric, Number, attribute, event, metric};

use super::{
    distribution::Distribution,
    meaning::Meaning,
    row::{Becomes, TagRow},
    system::{self, System, TextMeaning, system_of},
    torchspec::{self, StepReading},
};
use pulsetrain_record::{
    Place, PreparedSeries, Recorder, SkipReason,
    in_order::{InOrder, MOST_NAMES},
};

/// When and at which step something was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// In nanoseconds since 1970.
    pub(crate) time_unix_nanos: u64,
    /// The step that the writer gave, if it is of a step.
    pub(crate) step: Option<i64>,
    /// Where in the file it stands.
    pub(crate) place: Place,
}

/// The place of a tag among those of its file; `None` for a tag beyond the limit, whose values are skipped and counted. A place
/// stays valid for as long as the file is read.
pub(crate) type TagPlace = Option<usize>;

/// The rule for numbers that say the step again.
const STEP_AGAIN: &str = "step_again";

/// What is known of the tags of one file.
#[derive(Debug, Default)]
pub(crate) struct Scalars {
    /// What the tags mean that are the writer's own and no trainer's.
    own: &'static [TagRow],
    system: Option<&'static System>,
    /// Every tag that has come.
    tags: InOrder<Tag>,
    highest_step: Option<i64>,
    /// What a step of TorchSpec says of its bottleneck.
    bottleneck: Option<StepReading>,
    /// Whether the numbers of a step come in no order, and [`Self::end_of_step`] says that all have come.
    is_unordered: bool,
}

#[derive(Debug, Default)]
struct Tag {
    /// Nothing where no row knows the tag.
    meaning: Option<Meaning>,
    /// What the tag's numbers are points of, where they are those of a metric of their own.
    series: Option<PreparedSeries>,
    /// What a text under the tag is, where the system knows it.
    text: Option<TextMeaning>,
    /// Whether it was said that no row knows the tag.
    is_told: bool,
    /// What a total came to when it was last seen.
    last_total: f64,
    /// When a distribution was last seen.
    last_time_unix_nanos: u64,
}

impl Scalars {
    /// Takes in numbers whose tags a writer has given itself.
    pub(crate) fn of_writer(own: &'static [TagRow]) -> Self {
        Self {
            own,
            ..Self::default()
        }
    }

    /// Takes in the numbers of a writer that is known to be of a system.
    pub(crate) fn of_system(system: &'static System) -> Self {
        Self {
            system: Some(system),
            ..Self::default()
        }
    }

    /// Takes in the numbers of a writer that gives those of a step at once, in no order.
    pub(crate) fn unordered() -> Self {
        Self {
            is_unordered: true,
            ..Self::default()
        }
    }

    /// All numbers of a step have come, of a writer that gives them in no order.
    pub(crate) fn end_of_step(&self, at: At, recorder: &mut Recorder<'_>) {
        if let Some(bottleneck) = &self.bottleneck {
            bottleneck.record(at.time_unix_nanos, recorder);
        }
    }

    /// Sees whether a tag gives the system away; once it is known, its own table counts. A writer that gives several
    /// numbers at once in no order shows all their tags first.
    pub(crate) fn show(&mut self, tag: &[u8]) {
        if self.system.is_none() && self.tags.place_of_bytes(tag).is_none() {
            self.system = system_of(&String::from_utf8_lossy(tag));
            let is_torchspec = self.system.is_some_and(|system| system.name == torchspec::NAME);
            self.bottleneck = is_torchspec.then(StepReading::default);
            if self.system.is_some() {
                self.resolve_again();
            }
        }
    }

    /// Resolves every tag by the table of the system that is known now. Tags keep their places, which callers hold.
    fn resolve_again(&mut self) {
        let (own, system) = (self.own, self.system);
        for (name, tag) in self.tags.iter_mut() {
            tag.resolve(name, own, system);
        }
    }

    /// Whether a number under a tag is one of at most `most` tags: for writers that nobody knows.
    pub(crate) fn admits(&self, tag: &str, most: usize) -> bool {
        self.tags.contains(tag) || self.tags.len() < most
    }

    /// Returns the place of a tag that is given by its bytes. Tags are UTF-8; what is not is kept as far as it can be.
    #[inline]
    pub(crate) fn place_of(&mut self, tag: &[u8]) -> TagPlace {
        match self.tags.place_of_bytes(tag) {
            Some(place) => Some(place),
            None => self.place(&String::from_utf8_lossy(tag)),
        }
    }

    /// Whether the number under the tag at a place is the step.
    pub(crate) fn is_step(&mut self, place: TagPlace) -> bool {
        let meaning = place.and_then(|place| self.tags.at(place).meaning.as_ref());
        meaning.is_some_and(|meaning| meaning.row.becomes == Becomes::Step)
    }

    /// Forgets the steps that a restart takes back.
    pub(crate) fn restart_from(&mut self, step: i64) {
        self.highest_step = step.checked_sub(1);
    }

    /// Records a number under a tag.
    pub(crate) fn record(&mut self, tag: &str, at: At, value: f64, recorder: &mut Recorder<'_>) {
        let place = self.place(tag);
        self.record_at(place, at, value, recorder);
    }

    /// Records a number under the tag at a place.
    pub(crate) fn record_at(&mut self, place: TagPlace, at: At, value: f64, recorder: &mut Recorder<'_>) {
        let Some(place) = place else {
            return skip_beyond_limit(at.place, recorder);
        };
        let (name, known) = self.tags.named_at(place);
        let time = at.time_unix_nanos;
        let Some(meaning) = &known.meaning else {
            if !std::mem::replace(&mut known.is_told, true) {
                tell_unknown(name, at.place, recorder);
            }
            recorder.record_custom(time, name, value);
            return self.say_step(at, recorder);
        };
        let converted = meaning.row.conversion.apply(value);
        let (metric, value) = match meaning.row.becomes {
            Becomes::Nothing(rule) => return recorder.skip_value(SkipReason::LeftOut(rule)),
            Becomes::Step if at.step.is_some_and(|step| value == step as f64) => {
                recorder.skip_value(SkipReason::LeftOut(STEP_AGAIN));
                return self.say_step(at, recorder);
            }
            Becomes::Value(metric) if fits(metric, converted) => (metric, converted),
            Becomes::Total(metric) if fits(metric, converted) => (metric, known.growth(converted)),
            // What its metric cannot take keeps its own name too.
            _ => {
                recorder.record_custom(time, name, value);
                return self.say_step(at, recorder);
            }
        };
        if let Some(series) = &mut known.series {
            recorder.record_prepared(series, time, value);
        }
        if let Some(bottleneck) = &mut self.bottleneck {
            let is_last = bottleneck.take(metric, value, at.step);
            if is_last && !self.is_unordered {
                bottleneck.record(time, recorder);
            }
        }
        self.say_step(at, recorder);
    }

    /// Records a text under a tag.
    pub(crate) fn record_text(&mut self, tag: &str, at: At, text: &str, recorder: &mut Recorder<'_>) {
        let place = self.place(tag);
        self.record_text_at(place, at, text, recorder);
    }

    /// Records a text under the tag at a place.
    pub(crate) fn record_text_at(
        &mut self,
        place: TagPlace,
        at: At,
        text: &str,
        recorder: &mut Recorder<'_>,
    ) {
        let Some(place) = place else {
            return skip_beyond_limit(at.place, recorder);
        };
        let (tag, known) = self.tags.named_at(place);
        let time = at.time_unix_nanos;
        match &known.text {
            Some(TextMeaning::Configuration) => {
                return recorder.record_event(&event::RUN_CONFIG, time, Some(Value::Text(text)), &[]);
            }
            Some(TextMeaning::Option(name)) => return record_option(name, Value::Text(text), time, recorder),
            None => {}
        }
        let becomes = known.meaning.as_ref().map(|meaning| meaning.row.becomes);
        if let Some(Becomes::State(metric, attribute)) = becomes {
            return recorder.record_state(metric, attribute, time, text, &[]);
        }
        let mut attributes: Vec<Attribute<'_>> = vec![(&attribute::TRAIN_RECORD_KIND, Value::Text(tag))];
        attributes.extend(at.step.map(|step| (&attribute::TRAIN_STEP, Value::Int(step))));
        let body = Some(Value::Text(text));
        recorder.record_event(&event::TRAIN_CUSTOM_RECORD, time, body, &attributes);
    }

    /// Records a distribution under the tag at a place, of what came after the one before; says whether it is one.
    pub(crate) fn record_distribution_at(
        &mut self,
        place: TagPlace,
        at: At,
        distribution: &Distribution,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let Some(parts) = distribution.parts() else {
            return false;
        };
        let Some(place) = place else {
            skip_beyond_limit(at.place, recorder);
            return true;
        };
        let (tag, known) = self.tags.named_at(place);
        let time = at.time_unix_nanos;
        let since = std::mem::replace(&mut known.last_time_unix_nanos, time).min(time);
        recorder.record_custom_distribution(since, time, tag, parts, &distribution.bounds);
        true
    }

    /// Records the step once, when its first number comes. Several writers of one file may count apart, so a step that is
    /// behind another one is not news.
    fn say_step(&mut self, at: At, recorder: &mut Recorder<'_>) {
        let Some(step) = at.step else { return };
        if self.highest_step.is_none_or(|highest| step > highest) {
            self.highest_step = Some(step);
            recorder.record(&metric::TRAIN_GLOBAL_STEP, at.time_unix_nanos, step as f64, &[]);
        }
    }

    #[inline]
    fn place(&mut self, tag: &str) -> TagPlace {
        match self.tags.place(tag) {
            Some(place) => Some(place),
            None => self.add(tag),
        }
    }

    fn add(&mut self, tag: &str) -> TagPlace {
        if self.tags.len() >= MOST_NAMES {
            return None;
        }
        self.show(tag.as_bytes());
        let mut new = Tag::default();
        new.resolve(tag, self.own, self.system);
        Some(self.tags.add(tag, new))
    }
}

impl Tag {
    /// Resolves the meaning of the tag by the writer's own table and that of the system.
    fn resolve(&mut self, name: &str, own: &'static [TagRow], system: Option<&'static System>) {
        let texts = system.map_or(&[][..], |system| system.texts);
        self.text = texts.iter().find_map(|row| row.matches(name));
        self.meaning = Meaning::find(own.iter().chain(system::rows(system)), name);
        self.series = self.meaning.as_ref().and_then(series);
    }

    /// What a total grew by; one that falls has begun again.
    fn growth(&mut self, total: f64) -> f64 {
        let before = std::mem::replace(&mut self.last_total, total);
        if total < before { total } else { total - before }
    }
}

/// What the numbers under a tag are points of, where they are those of a metric of their own.
fn series(meaning: &Meaning) -> Option<PreparedSeries> {
    match meaning.row.becomes {
        Becomes::Value(metric) | Becomes::Total(metric) => {
            Some(meaning.with_attributes(|attributes| PreparedSeries::new(metric, attributes)))
        }
        _ => None,
    }
}

/// Records an option of the configuration.
pub(crate) fn record_option(name: &str, value: Value<'_>, time_unix_nanos: u64, recorder: &mut Recorder<'_>) {
    let attributes = [
        (&attribute::RUN_OPTION_NAME, Value::Text(name)),
        (&attribute::RUN_OPTION_VALUE, value),
    ];
    recorder.record_event(&event::RUN_OPTION, time_unix_nanos, None, &attributes);
}

fn skip_beyond_limit(place: Place, recorder: &mut Recorder<'_>) {
    recorder.skip(SkipReason::TooManyNames, place, || {
        format!("this input has more than {MOST_NAMES} names; values under further ones are left out: log fewer names")
    });
}

fn tell_unknown(tag: &str, place: Place, recorder: &mut Recorder<'_>) {
    recorder.skip(SkipReason::UnknownName, place, || {
        format!("{tag} is a tag that the registry has no name for; its values are kept as train.custom")
    });
}

/// Whether the metric can take the value; what it cannot is kept under its own name.
fn fits(metric: &Metric, value: f64) -> bool {
    match metric.instrument {
        Instrument::Counter | Instrument::Histogram => value.is_finite() && value >= 0.0,
        Instrument::Gauge | Instrument::UpDownCounter => value.is_finite() || metric.number == Number::Double,
    }
}
