//! Variables of the environment, as they are looked at.

/// Looks variables up.
#[derive(Clone, Copy)]
pub(super) struct Variables<'a>(pub(super) &'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    /// What a variable is set to; an empty one counts as unset.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.even_empty(name).filter(|value| !value.trim().is_empty())
    }

    /// What a variable is set to, where nothing means something too.
    pub(super) fn even_empty(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }
}
