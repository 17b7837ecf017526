//! Event sets: each receives the events after its registration, one per call, also identical ones.

use nvml_wrapper::{EventSet, Nvml, bitmasks::event::EventTypes, enums::event::XidError};

use crate::fake_nvml::driver::{error_of, start};

#[test]
fn burst_of_one_xid_code_yields_one_event_per_occurrence() {
    let (fake, nvml) = start("xid_burst", "");
    let set = listen(&nvml, 0);
    fake.at(9.0);
    assert_eq!(error_of(set.wait(1)), "Timeout");
    fake.at(10.0005);
    assert_eq!(drain(&set), [94]);
    fake.at(19.0);
    assert_eq!(drain(&set), vec![94; 999]);
    fake.at(25.0);
    assert_eq!(drain(&set), [48]);
    fake.at(35.0);
    assert_eq!(drain(&set), [0; 0], "another GPU's error is not this one's");
}

#[test]
fn queued_events_keep_their_own_xid_codes() {
    let (fake, nvml) = start("xid_burst", "");
    let set = listen(&nvml, 0);
    fake.at(20.0);
    let codes = drain(&set);
    assert_eq!(codes.len(), 1_001);
    assert_eq!(
        (codes[0], codes[1_000]),
        (94, 48),
        "only NVML of Windows repeats the last code"
    );
}

#[test]
fn event_set_receives_only_events_after_registration() {
    let (fake, nvml) = start("xid_burst", "");
    fake.at(15.0);
    let set = listen(&nvml, 0);
    assert_eq!(drain(&set), [0; 0]);
    fake.at(20.0);
    assert_eq!(drain(&set), [48]);
}

#[test]
fn event_set_with_a_lost_gpu_returns_gpu_lost() {
    let (fake, nvml) = start("gpu_lost", "");
    let set = listen(&nvml, 3);
    fake.at(11.0);
    assert_eq!(drain_until_refused(&set), ([79].to_vec(), "GpuLost".to_owned()));
}

fn listen(nvml: &Nvml, index: u32) -> EventSet<'_> {
    let device = nvml.device_by_index(index).expect("a device");
    let set = nvml.create_event_set().expect("an event set");
    device
        .register_events(EventTypes::CRITICAL_XID_ERROR, set)
        .unwrap_or_else(|error| panic!("the set listens: {:?}", error.error))
}

fn drain(set: &EventSet) -> Vec<u64> {
    let (codes, refused) = drain_until_refused(set);
    assert_eq!(refused, "Timeout");
    codes
}

/// Returns the codes that a set receives, and the error after the last one.
fn drain_until_refused(set: &EventSet) -> (Vec<u64>, String) {
    let mut codes = Vec::new();
    loop {
        match set.wait(0) {
            Ok(event) => match event.event_data {
                Some(XidError::Value(code)) => codes.push(code),
                other => panic!("an XID error has a code, not {other:?}"),
            },
            Err(error) => return (codes, format!("{error:?}")),
        }
    }
}
