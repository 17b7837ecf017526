//! The files themselves: each is valid, has a description of its use case, and is listed in the table of the README.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pulsetrain_tests::{Folder, Judge, promtool, some_or_return};
use serde_json::Value;

use crate::collector_config::otelcol::config;

/// Returns the names of the configurations in a folder of `collector-config`, as `FOLDER/NAME`.
fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(config(folder)).expect("the folder is there");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    let mut names: Vec<String> = names
        .filter(|name| name.ends_with(".yaml") || name.ends_with(".yml"))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    names.sort();
    names
}

fn all_names() -> Vec<String> {
    let folders = ["collector", "backends", "pulsetrain", "local"];
    folders.iter().flat_map(|folder| names(folder)).collect()
}

fn yaml(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn collector_files() -> Vec<PathBuf> {
    let mut names = names("collector");
    names.push("local/collector.yaml".into());
    names.iter().map(|name| config(name)).collect()
}

#[test]
fn every_config_file_states_its_use_case_and_is_listed_in_the_readme() {
    let readme = fs::read_to_string(config("README.md")).expect("there is a README");
    for name in all_names() {
        let text = fs::read_to_string(config(&name)).expect("the file is there");
        assert!(
            text.starts_with("# Use case: "),
            "{name} begins without its use case"
        );
        assert!(text.contains("\n#   "), "{name} has no command in its head");
        assert!(
            readme.contains(&format!("({name})")),
            "{name} is not in README.md"
        );
    }
    let links = readme
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    for link in links.filter(|link| !link.contains("://")) {
        assert!(
            config(link).exists(),
            "README.md names {link}, which is not there"
        );
    }
}

#[test]
fn the_collector_accepts_every_file() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let validate = |file: &Path| {
        let mut command = Command::new(&program);
        command.args(["validate", "--config"]).arg(file);
        command.output().expect("the Collector can be started")
    };
    for file in collector_files() {
        let output = validate(&file);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", file.display());
    }
    // The check works: it rejects an unknown key.
    let text = fs::read_to_string(config("collector/agent.yaml")).expect("the file is there");
    let folder = Folder::new();
    let wrong = folder.file("wrong.yaml", text.replace("check_interval", "chek_interval"));
    assert!(!validate(&wrong).status.success());
}

/// Connections to other machines are encrypted unless the URL or a variable disables it.
#[test]
fn no_collector_config_disables_tls() {
    for file in collector_files() {
        let text = fs::read_to_string(&file).expect("the file is there");
        // The targets of local/collector.yaml are on loopback.
        let is_local = file.ends_with("local/collector.yaml");
        let is_insecure = text.contains("insecure: true") || text.contains("INSECURE:-true");
        assert_eq!(is_insecure, is_local, "{}", file.display());
    }
}

/// Prometheus and Mimir reject samples that are older than the newest one of the series, outside of a window.
#[test]
fn metrics_exporters_send_one_request_at_a_time() {
    for file in collector_files() {
        let config = yaml(&file);
        let pipelines = config["service"]["pipelines"].as_object().expect("pipelines");
        let of_metrics = pipelines.iter().filter(|(name, _)| name.starts_with("metrics"));
        for (_, pipeline) in of_metrics {
            for exporter in pipeline["exporters"].as_array().expect("exporters") {
                let exporter = exporter.as_str().expect("a name");
                // Prometheus scrapes this exporter.
                if exporter == "prometheus" {
                    continue;
                }
                let config = &config["exporters"][exporter];
                let queue = ["sending_queue", "remote_write_queue"].map(|key| &config[key]["num_consumers"]);
                assert!(queue.contains(&&Value::from(1)), "{}: {exporter}", file.display());
            }
        }
    }
}

/// A component that no file uses only costs build time.
#[test]
fn collector_manifest_lists_exactly_the_used_components() {
    let plain = |name: &str| name.replace('_', "");
    let mut used = BTreeSet::new();
    for file in collector_files() {
        let file = yaml(&file);
        for kind in ["receivers", "processors", "exporters", "connectors", "extensions"] {
            let components = file[kind].as_object().into_iter().flatten();
            for (id, _) in components {
                let name = id.split('/').next().expect("a split has a first part");
                used.insert((kind, plain(name)));
            }
        }
    }
    let manifest = config("builder.yaml");
    let of_judge = config("../tests/judges/collector/manifest.yaml");
    let text = |path: &Path| fs::read_to_string(path).expect("the manifest is readable");
    assert_eq!(
        text(&of_judge),
        text(&manifest),
        "copy the manifest to {}",
        of_judge.display()
    );
    let manifest = yaml(&manifest);
    let mut built = BTreeSet::new();
    for kind in ["receivers", "processors", "exporters", "connectors", "extensions"] {
        for component in manifest[kind].as_array().expect("the manifest lists them") {
            let module = component["gomod"].as_str().expect("a module").split(' ').next();
            let last = module.and_then(|path| path.rsplit('/').next()).expect("a path");
            let name = last.strip_suffix(kind.trim_end_matches('s')).unwrap_or(last);
            built.insert((kind, plain(name)));
        }
    }
    assert_eq!(used, built);
}

#[test]
fn prometheus_accepts_its_files() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let files = ["backends/prometheus-scrape.yml", "backends/prometheus-otlp.yml"].map(config);
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let checked = promtool(&program, &["check", "config"], &paths);
    assert!(checked.status.success(), "{checked:?}");
    // The rules of the checkout are found from its folder.
    assert!(
        String::from_utf8_lossy(&checked.stdout).contains("rule files found"),
        "{checked:?}"
    );
}

#[test]
fn compose_mounts_files_that_exist_and_pins_its_images() {
    let compose = yaml(&config("local/compose.yaml"));
    let services = compose["services"].as_object().expect("there are services");
    for (name, service) in services {
        let image = service["image"].as_str().expect("an image");
        let tag = image.rsplit(':').next().expect("a split has a last part");
        assert!(
            tag.contains(|c: char| c.is_ascii_digit()),
            "{name}: {image} is not pinned"
        );
        assert_eq!(
            service["network_mode"], "host",
            "{name}: its files listen on loopback"
        );
        let texts = |key: &str| service[key].as_array().cloned().unwrap_or_default();
        let mounts: Vec<(String, String)> = texts("volumes")
            .iter()
            .filter_map(|mount| {
                let (from, to) = mount.as_str()?.split_once(':')?;
                from.starts_with('.')
                    .then(|| (from.into(), to.trim_end_matches(":ro").into()))
            })
            .collect();
        let environment = service["environment"].as_object().into_iter().flatten();
        let values = environment.filter_map(|(_, value)| value.as_str().map(str::to_owned));
        let arguments = texts("command")
            .into_iter()
            .filter_map(|value| value.as_str().map(str::to_owned));
        for value in values.chain(arguments) {
            let Some(at) = value.find("/pulsetrain/") else {
                continue;
            };
            let path = &value[at..];
            let (from, to) = mounts.iter().find(|(_, to)| path.starts_with(to)).expect(path);
            let file = config("local")
                .join(from)
                .join(path[to.len()..].trim_start_matches('/'));
            assert!(
                file.exists(),
                "{name}: {path} is {}, which is not there",
                file.display()
            );
        }
    }
}
