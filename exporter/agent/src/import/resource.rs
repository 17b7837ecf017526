//! The resource attributes that the environment adds: `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`
//! (OpenTelemetry specification, "Environment Variable Specification").

use pulsetrain_record::launcher::SLURM;
use pulsetrain_semconv::attribute;

use crate::failure::Failure;

/// The service name, and every other attribute.
pub(crate) type Resource = (Option<String>, Vec<(String, String)>);

/// Reads both variables; an empty one counts as unset.
pub(crate) fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Resource, Failure> {
    let set = |name| lookup(name).filter(|value| !value.trim().is_empty());
    let mut attributes = set("OTEL_RESOURCE_ATTRIBUTES").map_or(Ok(Vec::new()), |list| parse(&list))?;
    let named = attributes
        .iter()
        .position(|(key, _)| key == attribute::SERVICE_NAME.name);
    let listed = named.map(|place| attributes.remove(place).1);
    Ok((set("OTEL_SERVICE_NAME").or(listed), attributes))
}

/// Returns the resource of [`from_env`] without invalid variables: each is ignored completely, as the specification
/// requires, and reported to `warn`.
pub(crate) fn from_env_or_without(
    lookup: impl Fn(&str) -> Option<String>,
    warn: impl FnOnce(&str),
) -> Resource {
    from_env(&lookup).unwrap_or_else(|error| {
        warn(&format!("continues without it: {error}"));
        let named = lookup("OTEL_SERVICE_NAME").filter(|name| !name.trim().is_empty());
        (named, Vec::new())
    })
}

/// Adds `host.name` to the resource of logs that this machine writes, unless the user gave another.
pub(crate) fn on_this_machine((service, mut attributes): Resource) -> Resource {
    let host = attribute::HOST_NAME.name;
    if attributes.iter().all(|(key, _)| key != host) {
        let machine = rustix::system::uname();
        attributes.push((host.to_owned(), machine.nodename().to_string_lossy().into_owned()));
    }
    (service, attributes)
}

/// Adds the attributes of the Slurm job in whose environment a command is started, unless the user gave others.
pub(crate) fn in_slurm_job(
    (service, mut attributes): Resource,
    variable: impl Fn(&str) -> Option<String>,
) -> Resource {
    for (attribute, name) in SLURM {
        let is_given = attributes.iter().any(|(key, _)| key == attribute.name);
        let value = variable(name).filter(|value| !is_given && !value.is_empty());
        attributes.extend(value.map(|value| (attribute.name.to_owned(), value)));
    }
    (service, attributes)
}

/// Parses `key=value,key=value` with percent-encoded values.
fn parse(list: &str) -> Result<Vec<(String, String)>, Failure> {
    list.split(',')
        .filter(|entry| !entry.trim().is_empty())
        .map(entry)
        .collect()
}

fn entry(entry: &str) -> Result<(String, String), Failure> {
    let wrong = || Failure::usage(format!("OTEL_RESOURCE_ATTRIBUTES: {entry:?} is not key=value"));
    let (key, value) = entry.split_once('=').ok_or_else(wrong)?;
    if key.trim().is_empty() {
        return Err(wrong());
    }
    let value = percent_encoding::percent_decode_str(value.trim())
        .decode_utf8()
        .map_err(|_| wrong())?;
    Ok((key.trim().to_owned(), value.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn otel_service_name_overrides_the_resource_attribute() {
        let lookup = |name: &str| match name {
            "OTEL_SERVICE_NAME" => Some("mine".to_owned()),
            "OTEL_RESOURCE_ATTRIBUTES" => Some("service.name=other, team=a%20b".to_owned()),
            _ => None,
        };
        let (service, attributes) = from_env(lookup).unwrap();
        assert_eq!(
            (service.as_deref(), attributes),
            (Some("mine"), vec![("team".to_owned(), "a b".to_owned())])
        );
    }

    #[test]
    fn invalid_list_is_ignored_completely_and_reported() {
        for wrong in ["team=a,zone", "team=a,=b", "team=%ff"] {
            let lookup = |name: &str| match name {
                "OTEL_SERVICE_NAME" => Some("mine".to_owned()),
                _ => Some(wrong.to_owned()),
            };
            let mut warning = String::new();
            let (service, attributes) = from_env_or_without(lookup, |words| warning = words.to_owned());
            assert_eq!(
                (service.as_deref(), attributes),
                (Some("mine"), Vec::new()),
                "{wrong}"
            );
            assert!(warning.contains("OTEL_RESOURCE_ATTRIBUTES"), "{warning}");
        }
    }

    #[test]
    fn host_name_set_by_the_user_is_kept() {
        let named = ("host.name".to_owned(), "node7".to_owned());
        let (_, attributes) = on_this_machine((None, vec![named.clone()]));
        assert_eq!(attributes, [named]);
        let (_, attributes) = on_this_machine((None, Vec::new()));
        assert!(
            attributes.len() == 1 && !attributes[0].1.is_empty(),
            "{attributes:?}"
        );
    }

    #[test]
    fn slurm_job_is_in_the_resource_unless_the_user_gave_another() {
        let named = ("slurm.job.name".to_owned(), "mine".to_owned());
        let variable = |name: &str| match name {
            "SLURM_JOB_ID" => Some("7".to_owned()),
            "SLURM_JOB_NAME" => Some("theirs".to_owned()),
            "SLURM_JOB_PARTITION" => Some("gpu".to_owned()),
            _ => None,
        };
        let (_, attributes) = in_slurm_job((None, vec![named.clone()]), variable);
        let own = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            attributes,
            [named, own("slurm.job.id", "7"), own("slurm.partition", "gpu")]
        );
    }

    #[test]
    fn resource_attribute_without_a_value_is_rejected() {
        assert!(matches!(
            from_env(|_| Some("team".to_owned())),
            Err(Failure::Usage(_))
        ));
    }
}
