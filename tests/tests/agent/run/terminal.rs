//! A trainer in its own pseudoterminal: its size, its keys, its job control.

use std::{io::Write, process::Command};

use pulsetrain_tests::{Folder, Terminal, command, on_terminal};

use crate::run::world::sent;

#[test]
fn a_trainer_on_a_terminal_has_a_terminal_of_the_same_size() {
    let script = r"test -t 0 && test -t 1 && test -t 2 && stty size; printf '\033[1mbold\rbar\n'; exit 3";
    let (code, printed) = script_on_terminal(script, |_, _| {});
    assert_eq!(code, Some(3));
    assert_eq!(printed, "40 100\r\n\u{1b}[1mbold\rbar\r\n");
}

#[test]
fn terminal_resize_is_forwarded_to_the_trainer() {
    let script = "trap 'stty size; exit 6' WINCH; stty size; echo ready; while :; do sleep 0.05; done";
    let (code, printed) = script_on_terminal(script, |terminal, printed| {
        if printed.ends_with("ready\r\n") {
            terminal.resize(50, 132);
        }
    });
    assert_eq!(code, Some(6));
    assert_eq!(printed, "40 100\r\nready\r\n50 132\r\n");
}

#[test]
fn interrupt_key_reaches_the_trainer_once() {
    let script = "n=0; trap 'n=$((n+1))' INT; echo ready; while [ $n -eq 0 ]; do sleep 0.05; done; sleep 0.2; echo $n times; exit 5";
    let (code, printed) = script_on_terminal(script, |keys, printed| {
        if printed.ends_with("ready\r\n") {
            keys.write_all(b"\x03").unwrap();
        }
    });
    assert_eq!(code, Some(5));
    assert!(printed.ends_with("1 times\r\n"), "{printed:?}");
}

/// A scheduler signals every process of a step, also of a trainer that has a terminal and a session of its own.
#[test]
fn signal_to_every_process_reaches_a_trainer_on_a_terminal_once() {
    let script = "n=0; trap 'n=$((n+1)); sleep 0.2; sleep 0.2' TERM; kill -TERM $PPID $(cat /proc/$PPID/task/$PPID/children); \
                  sleep 0.2; echo $n times; exit 5";
    let (code, printed) = script_on_terminal(script, |_, _| {});
    assert_eq!((code, printed.as_str()), (Some(5), "1 times\r\n"));
}

#[test]
fn signal_to_run_reaches_a_trainer_on_a_terminal_once() {
    let script = "n=0; trap 'n=$((n+1)); sleep 0.2; sleep 0.2' TERM; kill -TERM $PPID; \
                  for i in $(seq 1200); do [ $n -gt 0 ] && break; sleep 0.05; done; sleep 0.2; echo $n times; exit 5";
    let (code, printed) = script_on_terminal(script, |_, _| {});
    assert_eq!((code, printed.as_str()), (Some(5), "1 times\r\n"));
}

/// A shell starts us, Ctrl-Z is typed, the shell checks the state, lets the trainer finish, and resumes us in the foreground.
#[test]
fn suspend_key_stops_the_trainer_until_it_is_foregrounded() {
    let printed = suspended("echo ready;", |keys, printed| {
        if printed.ends_with("ready\r\n") {
            keys.write_all(b"\x1a").unwrap();
        }
    });
    assert_suspended_and_fetched_back(&printed);
}

/// As above, without typing: a signal is sent only to our process.
#[test]
fn suspend_signal_stops_the_trainer_until_it_is_foregrounded() {
    let printed = suspended("kill -TSTP $PPID;", |_, _| {});
    assert_suspended_and_fetched_back(&printed);
}

/// Returns the output of a shell that starts us and waits until the trainer is stopped; the trainer begins with `first`.
fn suspended(first: &str, react: impl FnMut(&mut Terminal, &str)) -> String {
    const SHELL: &str = r#"set -m; "$@"; echo "suspended $?"; stty -a | grep -ow -e -icanon -e icanon
        until grep -q 'State:.T' /proc/$(cat "$DIR"/pid)/status; do sleep 0.05; done
        touch "$DIR"/go; fg > /dev/null; echo "ended $?""#;
    let trainer =
        format!(r#"echo $$ > "$DIR"/pid; {first} while [ ! -e "$DIR"/go ]; do :; done; stty size; exit 4"#);
    let folder = Folder::new();
    let run = command([]);
    let mut shell = Command::new("env");
    shell.arg(format!("DIR={}", folder.root().display()));
    shell.args(["sh", "-c", SHELL, "sh"]).arg(run.get_program());
    shell
        .args(["run", "--format=maxtext", "--no-gpu", "--to"])
        .arg(sent(&folder));
    shell.args(["--", "sh", "-c", &trainer]);
    on_terminal(&shell, react).1
}

fn assert_suspended_and_fetched_back(printed: &str) {
    for expected in ["suspended 148\r\nicanon\r\n", "40 100\r\nended 4\r\n"] {
        assert!(
            printed.contains(expected),
            "{expected:?} is missing in {printed:?}"
        );
    }
}

/// Keys are passed to the trainer if its terminal is in raw mode.
#[test]
fn trainer_in_raw_mode_receives_the_suspend_key() {
    let script = "stty raw -echo; echo ready; dd bs=1 count=1 2>/dev/null | od -An -tx1; exit 2";
    let (code, printed) = script_on_terminal(script, |keys, printed| {
        if printed.trim_end().ends_with("ready") {
            keys.write_all(b"\x1a").unwrap();
        }
    });
    assert_eq!(code, Some(2));
    assert!(printed.contains("1a"), "{printed:?}");
}

/// Runs a script under `pulsetrain run` in a terminal; `react` gets the output so far and may type.
fn script_on_terminal(script: &str, react: impl FnMut(&mut Terminal, &str)) -> (Option<i32>, String) {
    let folder = Folder::new();
    let mut command = command(["run", "--format=maxtext", "--to"]);
    command.arg(sent(&folder)).args(["--", "sh", "-c", script]);
    on_terminal(&command, react)
}
