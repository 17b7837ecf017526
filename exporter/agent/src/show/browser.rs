//! Opens the user's browser, if there is one.

use std::process::{Command, Stdio};

use pulsetrain_pipeline::Problem;

/// Asks the desktop to open an address. Returns the reason if that is not possible.
pub(super) fn open(url: &str) -> Result<(), Problem> {
    let program = program(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))?;
    Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
        .map_err(|error| Problem::new(format!("{program}: {error}")))
}

/// Returns the program that opens addresses. Without a display, `xdg-open` would start a terminal browser.
fn program(is_set: impl Fn(&str) -> bool) -> Result<&'static str, &'static str> {
    if cfg!(target_os = "macos") {
        return Ok("open");
    }
    if ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].into_iter().any(is_set) {
        Ok("xdg-open")
    } else {
        Err("no display is available (DISPLAY and WAYLAND_DISPLAY are not set)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn without_a_display_no_browser_is_started() {
        assert_eq!(program(|name| name == "DISPLAY"), Ok("xdg-open"));
        assert!(program(|_| false).is_err_and(|error| error.contains("no display is available")));
    }
}
