//! Trainers that are data: a mapping file per trainer in `mappings/`, in the grammar of `--mapping`, and a row here.

use std::sync::Arc;

use super::{
    Covered, Identity, LogParser, Mapping, generic, generic::MappingFile, lines::identify_by,
    ranked::each_printed_line,
};

/// The sign of every trainer.
pub(super) const DETECTED: &str = "lines that the patterns of its mapping match";

/// A trainer whose logs are read by an embedded mapping.
pub(super) struct Trainer {
    mapping: Arc<Mapping>,
}

impl Trainer {
    /// Reads an embedded mapping.
    pub(super) fn of(yaml: &str) -> Self {
        let file = MappingFile::parse(yaml).expect("invariant: a test parses every embedded mapping");
        let mapping = file.build();
        Self {
            mapping: Arc::new(mapping.expect("invariant: a test builds every embedded mapping")),
        }
    }

    /// Returns the mapping.
    pub(super) fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Whether some line of [`printed`] text matches each pattern of the mapping.
    pub(super) fn detects(&self, text: &str) -> bool {
        self.mapping.detects(text)
    }

    pub(super) fn parser(&self) -> Box<dyn LogParser> {
        generic::mapped_parser(&self.mapping)
    }

    pub(super) fn identify(&'static self, head: &[u8]) -> Identity {
        Identity {
            framework: self.mapping.framework(),
            ..identify_by(self.parser(), head)
        }
    }

    pub(super) fn coverage(&'static self) -> Vec<Covered> {
        self.mapping.coverage()
    }
}

/// Returns the first bytes of a log as text for [`Trainer::detects`].
pub(super) fn printed(head: &[u8]) -> String {
    let mut text = String::with_capacity(head.len());
    each_printed_line(head, |line| {
        text.push_str(line);
        text.push('\n');
    });
    text
}

/// The row of the trainer whose mapping is `mappings/NAME.yaml`.
macro_rules! trainer {
    ($name:literal, $brief:literal) => {{
        static TRAINER: std::sync::LazyLock<$crate::logs::trainers::Trainer> =
            std::sync::LazyLock::new(|| {
                $crate::logs::trainers::Trainer::of(include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/mappings/",
                    $name,
                    ".yaml"
                )))
            });
        LogFormat {
            name: $name,
            brief: $brief,
            framework: $name,
            shrinks: true,
            splits: false,
            recognise: |head| {
                let is_of = TRAINER.detects(&$crate::logs::trainers::printed(head));
                is_of.then_some($crate::logs::trainers::DETECTED)
            },
            identify: |head| TRAINER.identify(head),
            parser: Begin::Embedded {
                parser: || TRAINER.parser(),
                detects: |text| TRAINER.detects(text),
            },
            coverage: || TRAINER.coverage(),
        }
    }};
}
pub(super) use trainer;
