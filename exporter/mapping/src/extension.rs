//! Combines the mapping of a user with that of the format that it extends.

use std::sync::Arc;

use crate::{
    FieldTable, MappedFormat, Mapping,
    mapping::{Extension, loose},
    trainer::trainers,
};

impl Mapping {
    /// Returns the mapping of a format with the rows of this mapping of a user before its own. A format without a mapping in YAML
    /// gets the rows and the patterns only for the lines that it leaves.
    pub(crate) fn extending(mut self, format: &str) -> Self {
        let known = trainers().find(|trainer| trainer.name() == format);
        let base = known.map_or_else(Self::default, |trainer| Self::clone(trainer.mapping()));
        self.format = Some(MappedFormat::Text);
        self.is_loose = base.is_loose;
        if base.is_loose {
            self.table = self.table.in_loose_spelling();
            self.records
                .values_mut()
                .for_each(|table| *table = table.in_loose_spelling());
            self.steps
                .iter_mut()
                .chain(&mut self.time)
                .for_each(|key| *key = loose(key));
        }
        let mut records = base.records;
        for (kind, table) in &self.records {
            let of_format = records.remove(kind).unwrap_or_default();
            records.insert(kind.clone(), table.before(&of_format));
        }
        let steps = self.steps.iter().cloned();
        let others = base.steps.into_iter().filter(|step| !self.steps.contains(step));
        Self {
            framework: self.framework.clone(),
            ignored: [&self.ignored[..], &base.ignored].concat(),
            steps: steps.chain(others).collect(),
            time_form: if self.time.is_some() {
                self.time_form.clone()
            } else {
                base.time_form
            },
            time: self.time.clone().or(base.time),
            kind: self.kind.clone().or(base.kind),
            table: FieldTable::before(&self.table, &base.table),
            records,
            drops_unknown: self.drops_unknown || base.drops_unknown,
            extension: Some(Box::new(Extension {
                format: format.to_owned(),
                own: Arc::new(self),
            })),
            ..base
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::MappingFile;

    #[test]
    fn rows_of_the_user_precede_those_of_the_format() {
        let yaml = "extends: generic
step: Round
values: [{key: 'Loss/D', metric: train.loss}, {key: lr, keep: true}]";
        let mapping = MappingFile::parse(yaml).unwrap().build().unwrap();
        let metric = |key| {
            let resolved = mapping.resolve(None, key)?;
            resolved.mapping.target.metric().map(|metric| metric.name)
        };
        assert_eq!(metric("loss d"), Some("train.loss"));
        assert_eq!(metric("lr"), None);
        assert_eq!(metric("grad_norm"), Some("train.grad_norm"));
        assert_eq!(mapping.format_name(), Some("generic"));
        assert_eq!(mapping.steps()[0], "round");
        assert!(mapping.steps().len() > 5 && mapping.is_loose());
        assert_eq!(mapping.unused(&[(None, "lr"), (None, "round")]), ["loss_d"]);
        let loss = pulsetrain_semconv::metric::find("train.loss").unwrap();
        assert_eq!(mapping.is_preferred("Loss.D", loss), Some(true));
        assert_eq!(mapping.is_preferred("loss", loss), Some(false));
    }

    #[test]
    fn an_extended_format_has_its_own_syntax() {
        for yaml in [
            "extends: generic\nformat: text",
            "extends: generic\nkeys: loose",
            "extends: generic\nsign: ':'",
        ] {
            let faults = MappingFile::parse(yaml).unwrap().build().unwrap_err();
            assert!(faults[0].message.contains("extends"), "{faults:?}");
            assert_eq!(faults[0].line, 1, "{yaml}");
        }
    }
}
