//! The environment variables for the checks.

/// Returns the names of all variables.
pub(super) fn names() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}

/// Looks variables up.
#[derive(Clone, Copy)]
pub(super) struct Variables<'a>(pub(super) &'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    /// Returns the value of a variable; an empty variable counts as unset.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        self.even_empty(name).filter(|value| !value.trim().is_empty())
    }

    /// Returns the value of a variable for which an empty value has a meaning.
    pub(super) fn even_empty(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }
}
