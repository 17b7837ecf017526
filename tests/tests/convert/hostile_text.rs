//! Nothing that a log, a file name or a configuration contains controls the terminal on which a command prints it.

use std::{fs, process::Command};

use pulsetrain_tests::{Folder, command, free_port, on_terminal};

/// Sets the title, clears the screen, and colors the text, by C0 and by C1 (ECMA-48); turns the direction of text.
const HOSTILE: &str = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\u{202e}";

/// Returns the position of the first character that controls a terminal, with its surroundings.
fn control(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let is_control = |c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
    let at = text.find(is_control)?;
    Some(text[at..].chars().take(60).collect())
}

fn assert_harmless(command: &mut Command) {
    let output = command.output().expect("the program starts");
    for (stream, bytes) in [("output", &output.stdout), ("error", &output.stderr)] {
        let found = control(bytes);
        assert_eq!(found, None, "standard {stream} of {command:?}");
    }
    let printed = [output.stdout, output.stderr].concat();
    let is_named = printed.windows(5).any(|word| word == b"owned");
    assert!(is_named, "{command:?} does not name its input");
}

#[test]
fn no_command_prints_a_control_character_of_its_inputs() {
    let folder = Folder::new();
    let log = format!(
        "step 1 {HOSTILE} loss 2.5\n{{\"step\": 2, \"loss{HOSTILE}\": 2.25, \"{HOSTILE}\": 3}}\nstep 3 loss={HOSTILE}\nstep 4 loss 2.0 acc{HOSTILE}: 0.5\n"
    );
    let text = folder.file(&format!("{HOSTILE}.log"), &log);
    let json: String = (1..5)
        .map(|step| {
            let own = format!("own{HOSTILE}");
            let record = serde_json::json!({"step": step, "loss": 2.5, own: 1.5, "run_name": HOSTILE});
            format!("{record}\n")
        })
        .collect();
    let json = folder.file(&format!("{HOSTILE}.jsonl"), json);
    let config = folder.file(
        &format!("{HOSTILE}.yaml"),
        format!("sources:\n  \"a{HOSTILE}\": {{kind: no}}\n")
            .replace('\x1b', "\\e")
            .replace('\x07', "\\a"),
    );
    let otlp = folder.file(
        &format!("{HOSTILE}.otlp.jsonl"),
        format!("{{\"resourceSpans\": [{{\"resource\": 1}}]}}\n{HOSTILE}\n"),
    );
    let missing = folder.path(&format!("none{HOSTILE}"));
    let out = folder.path(&format!("out{HOSTILE}.jsonl"));
    for input in [&text, &json, &config, &otlp, &missing] {
        assert_harmless(
            command(["import", "--json", "--to"])
                .arg(format!("file:{}", out.display()))
                .arg(input),
        );
        assert_harmless(command(["import", "--suggest-mapping"]).arg(input));
        assert_harmless(
            command(["import", "--to", "stdout", "--mapping"])
                .arg(input)
                .arg(&text),
        );
        assert_harmless(command(["show", "--text"]).arg(input));
        assert_harmless(command(["doctor"]).arg(input));
        assert_harmless(command(["doctor", "--json"]).arg(input));
        assert_harmless(command(["semconv", "check"]).arg(input));
        assert_harmless(command(["convert", "-o"]).arg(&out).arg(input));
        assert_harmless(command(["convert", "--json", "-o"]).arg(&out).arg(input));
        assert_harmless(command(["agent", "--check", "--config"]).arg(input));
        assert_harmless(
            command(["run", "--no-gpu", "--config"])
                .arg(input)
                .args(["--", "true"]),
        );
    }
    assert_harmless(command(["run", "--no-gpu", "--"]).arg(&missing));
    let address = format!("http://127.0.0.1:{}/{HOSTILE}", free_port());
    assert_harmless(command(["import", "--to", &address]).arg(&text));
    fs::remove_file(&out).ok();
}

#[test]
fn wrong_argument_does_not_control_a_terminal() {
    let command = command(["import", "--no-such", &format!("--{HOSTILE}")]);
    let (code, printed) = on_terminal(&command, |_, _| {});
    assert_eq!(code, Some(2), "{printed}");
    // The terminal ends lines by two characters.
    assert_eq!(control(printed.replace("\r\n", "\n").as_bytes()), None);
    let (_, printed) = on_terminal(&pulsetrain_tests::command(["import", "--no-such"]), |_, _| {});
    assert!(printed.contains("\x1b["), "other errors are colored: {printed:?}");
}
