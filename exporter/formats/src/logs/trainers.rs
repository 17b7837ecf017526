//! Formats of trainers that need only a mapping and a row here.

use pulsetrain_mapping::trainer;

use super::{LogParser, RunHeader, generic, lines::identify_by, rank_prefix::each_printed_line};

/// The signature of every trainer.
pub(super) const DETECTED: &str = "lines that the patterns of its mapping match";

/// Returns whether some line of [`printed`] text matches each pattern of the trainer's mapping.
pub(super) fn detects(name: &str, text: &str) -> bool {
    trainer(name).mapping().detects(text)
}

/// Creates the parser of a log of the trainer.
pub(super) fn parser(name: &str) -> Box<dyn LogParser> {
    generic::mapped_parser(trainer(name).mapping())
}

/// Returns the header of the run in the first bytes of a log.
pub(super) fn identify(name: &str, head: &[u8]) -> RunHeader {
    RunHeader {
        framework: trainer(name).mapping().framework(),
        ..identify_by(parser(name), head)
    }
}

/// Returns the first bytes of a log as text for [`detects`].
pub(super) fn printed(head: &[u8]) -> String {
    let mut text = String::with_capacity(head.len());
    each_printed_line(head, |line| {
        text.push_str(line);
        text.push('\n');
    });
    text
}

/// The row of the trainer whose mapping is `mappings/NAME.yaml`.
macro_rules! trainer_format {
    ($name:literal, $brief:literal) => {
        LogFormat {
            name: $name,
            brief: $brief,
            framework: $name,
            continues_after_truncate: true,
            splits: false,
            detect: |head| {
                let is_of = trainers::detects($name, &trainers::printed(head));
                is_of.then_some(trainers::DETECTED)
            },
            identify: |head| trainers::identify($name, head),
            parser: ParserFactory::Embedded {
                parser: || trainers::parser($name),
                detects: |text| trainers::detects($name, text),
            },
            coverage: || pulsetrain_mapping::trainer($name).mapping().coverage(),
        }
    };
}
pub(super) use trainer_format;
