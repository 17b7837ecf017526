//! NVLink, and the links between GPU and CPU: each link by its number.

use nvml_wrapper::{error::NvmlError, sys_exports::field_id::*};
use pulsetrain_semconv::{
    attribute::{
        ERROR_TYPE, GPU_IO_DIRECTION, GPU_LINK_INDEX, GPU_NVLINK_BER_KIND, GPU_NVLINK_FEC_BIN,
        GPU_NVLINK_REMOTE_TYPE,
    },
    metric,
};

use super::super::{
    ffi,
    fields::MAX_LINKS,
    row::{
        Cadence::{Infrequent, Once},
        FieldValue::{Decoded, Is, Now, Total},
        QueryContext, QueryError, Row,
        Scope::{EachC2c, EachNvlink, NvlinkCounter},
    },
};
use crate::{
    Reason,
    reading::{Fixed, Labels, Readings},
};

/// Throughput is counted in KiB.
const KIB: f64 = 1024.0;
/// Speeds are in megabytes.
const MEGA: f64 = 1e6;

const NO_NVLINK: &str = "the GPU has no NVLink";
const NO_C2C: &str = "the GPU is not linked to a CPU";
const BEFORE_NVLINK5: &str = "the NVLink is older than the fifth generation";
const NO_NVLINK_TOTAL: &str = "the NVLink counts this by link, or not at all";

const ACTIVE: u64 = 1;

/// A row of errors of all links together.
macro_rules! errors {
    ($kind:literal, $field:ident) => {
        errors!($kind, $field, NO_NVLINK_TOTAL)
    };
    ($kind:literal, $field:ident, $absent:expr) => {
        Row::field(
            &metric::GPU_NVLINK_ERRORS,
            (stringify!($field), $field),
            &[(&ERROR_TYPE, $kind)],
            Total(1.0),
            Infrequent,
            $absent,
        )
    };
}

/// A row of errors that links of the fifth generation count.
macro_rules! nvlink5_errors {
    ($kind:literal, $field:ident) => {
        errors!($kind, $field, BEFORE_NVLINK5).scoped(NvlinkCounter)
    };
}

/// A row of the traffic of each link.
macro_rules! traffic {
    ($metric:ident, $direction:literal, $field:ident, $scale:expr, $absent:expr) => {
        Row::field(
            &metric::$metric,
            (stringify!($field), $field),
            &[(&GPU_IO_DIRECTION, $direction)],
            Total($scale),
            Infrequent,
            $absent,
        )
        .scoped(EachNvlink)
    };
}

/// A row of the bytes of each link.
macro_rules! bytes {
    ($direction:literal, $field:ident) => {
        traffic!(GPU_NVLINK_IO, $direction, $field, KIB, NO_NVLINK)
    };
}

/// A row of the traffic that links of the fifth generation count.
macro_rules! nvlink5_traffic {
    ($metric:ident, $direction:literal, $field:ident) => {
        traffic!($metric, $direction, $field, 1.0, BEFORE_NVLINK5).scoped(NvlinkCounter)
    };
}

/// A row of the bit error ratio of each link.
macro_rules! bit_errors {
    ($kind:literal, $field:ident) => {
        Row::field(
            &metric::GPU_NVLINK_BIT_ERROR_RATIO,
            (stringify!($field), $field),
            &[(&GPU_NVLINK_BER_KIND, $kind)],
            Decoded(bit_error_ratio),
            Infrequent,
            BEFORE_NVLINK5,
        )
        .scoped(EachNvlink)
    };
}

/// A row of the blocks of each link by the number of corrected symbols.
macro_rules! fec {
    ($bin:literal, $field:ident) => {
        Row::field(
            &metric::GPU_NVLINK_FEC_BLOCKS,
            (stringify!($field), $field),
            &[(&GPU_NVLINK_FEC_BIN, $bin)],
            Total(1.0),
            Infrequent,
            BEFORE_NVLINK5,
        )
        .scoped(NvlinkCounter)
    };
}

/// A row of the errors of each link to a CPU.
macro_rules! c2c_errors {
    ($kind:literal, $field:ident) => {
        Row::field(
            &metric::GPU_C2C_ERRORS,
            (stringify!($field), $field),
            &[(&ERROR_TYPE, $kind)],
            Total(1.0),
            Infrequent,
            NO_C2C,
        )
        .scoped(EachC2c)
    };
}

pub(super) static ROWS: &[Row] = &[
    bytes!("transmit", NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX),
    bytes!("receive", NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX),
    nvlink5_traffic!(GPU_NVLINK_IO, "transmit", NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES)
        .instead_of("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX"),
    nvlink5_traffic!(GPU_NVLINK_IO, "receive", NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES)
        .instead_of("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX"),
    nvlink5_traffic!(
        GPU_NVLINK_PACKETS,
        "transmit",
        NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS
    ),
    nvlink5_traffic!(
        GPU_NVLINK_PACKETS,
        "receive",
        NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS
    ),
    Row::field(
        &metric::GPU_NVLINK_UP,
        ("NVML_FI_DEV_NVLINK_GET_STATE", NVML_FI_DEV_NVLINK_GET_STATE),
        &[],
        Decoded(nvlink_up),
        Infrequent,
        NO_NVLINK,
    )
    .scoped(EachNvlink),
    Row::field(
        &metric::GPU_NVLINK_SPEED,
        ("NVML_FI_DEV_NVLINK_GET_SPEED", NVML_FI_DEV_NVLINK_GET_SPEED),
        &[],
        Now(MEGA),
        Infrequent,
        NO_NVLINK,
    )
    .scoped(EachNvlink),
    Row::call(
        &metric::GPU_NVLINK_INFO,
        "nvmlDeviceGetNvLinkRemoteDeviceType",
        Once,
        NO_NVLINK,
        remote_types,
    ),
    errors!("dl_replay", NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, NO_NVLINK).scoped(EachNvlink),
    errors!("dl_recovery", NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, NO_NVLINK).scoped(EachNvlink),
    errors!("dl_crc", NVML_FI_DEV_NVLINK_ERROR_DL_CRC, NO_NVLINK).scoped(EachNvlink),
    errors!("crc_flit", NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL),
    errors!("crc_data", NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL),
    errors!("replay", NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL),
    errors!("recovery", NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL),
    errors!("ecc", NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL),
    nvlink5_errors!(
        "malformed_packet",
        NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS
    ),
    nvlink5_errors!("buffer_overrun", NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS),
    nvlink5_errors!("receive", NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS),
    nvlink5_errors!("receive_remote", NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS),
    nvlink5_errors!("receive_general", NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS),
    nvlink5_errors!(
        "link_integrity",
        NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS
    ),
    nvlink5_errors!("transmit_discard", NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS),
    nvlink5_errors!(
        "recovery_failed",
        NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS
    ),
    nvlink5_errors!("effective", NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS),
    nvlink5_errors!("symbol", NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS),
    nvlink5_errors!("recovery_attempt", NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS),
    nvlink5_errors!(
        "recovery_successful",
        NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS
    ),
    bit_errors!("effective", NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER),
    bit_errors!("symbol", NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER),
    fec!("0", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0),
    fec!("1", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_1),
    fec!("2", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_2),
    fec!("3", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_3),
    fec!("4", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_4),
    fec!("5", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_5),
    fec!("6", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_6),
    fec!("7", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_7),
    fec!("8", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_8),
    fec!("9", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_9),
    fec!("10", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_10),
    fec!("11", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_11),
    fec!("12", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_12),
    fec!("13", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_13),
    fec!("14", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_14),
    fec!("15", NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_15),
    Row::field(
        &metric::GPU_C2C_UP,
        ("NVML_FI_DEV_C2C_LINK_GET_STATUS", NVML_FI_DEV_C2C_LINK_GET_STATUS),
        &[],
        Is(ACTIVE),
        Infrequent,
        NO_C2C,
    )
    .scoped(EachC2c),
    Row::field(
        &metric::GPU_C2C_SPEED,
        ("NVML_FI_DEV_C2C_LINK_GET_MAX_BW", NVML_FI_DEV_C2C_LINK_GET_MAX_BW),
        &[],
        Now(MEGA),
        Once,
        NO_C2C,
    )
    .scoped(EachC2c),
    // "C2C Link CRC Error Counter" (nvml.h), despite its name.
    c2c_errors!("crc", NVML_FI_DEV_C2C_LINK_ERROR_INTR),
    c2c_errors!("replay", NVML_FI_DEV_C2C_LINK_ERROR_REPLAY),
    c2c_errors!("replay_b2b", NVML_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B),
];

/// Reads the type of the device at the other end of each link that has one (`nvml.h`, `NVML_NVLINK_DEVICE_TYPE_*`).
fn remote_types(gpu: &QueryContext<'_, '_>, out: &mut Readings) -> Result<(), QueryError> {
    let mut answer = Err(QueryError::Because(Reason::NotSupported));
    // The maximum of the bindings is that of GPUs before Rubin.
    for link in 0..MAX_LINKS {
        let remote: Fixed = match ffi::nvlink_remote_type(gpu.device, link) {
            Ok(0) => &[(&GPU_NVLINK_REMOTE_TYPE, "gpu")],
            Ok(1) => &[(&GPU_NVLINK_REMOTE_TYPE, "cpu")],
            Ok(2) => &[(&GPU_NVLINK_REMOTE_TYPE, "switch")],
            Ok(_) => &[(&GPU_NVLINK_REMOTE_TYPE, "unknown")],
            // There are no more links.
            Err(NvmlError::InvalidArg) => break,
            Err(error) => {
                if answer.is_err() {
                    answer = Err(error.into());
                }
                continue;
            }
        };
        answer = Ok(());
        let labels = Labels::numbered(remote, &GPU_LINK_INDEX, link);
        out.now(&metric::GPU_NVLINK_INFO, labels, 1.0);
    }
    answer
}

/// Returns whether an NVLink works (`nvml.h`, `NVML_NVLINK_STATE_*`): 1 is active and, since driver 570, 2 is asleep until
/// there is traffic.
fn nvlink_up(state: u64) -> f64 {
    f64::from(u8::from(matches!(state, 1 | 2)))
}

/// Decodes a bit error ratio: a mantissa from bit 8 on, divided by ten to the power of the lowest 8 bits (`nvml.h`,
/// `NVML_NVLINK_BER_*`).
fn bit_error_ratio(encoded: u64) -> f64 {
    let mantissa = (encoded >> 8 & 0xf) as f64;
    let exponent = (encoded & 0xff) as i32;
    mantissa * 10f64.powi(-exponent)
}

#[cfg(test)]
mod tests {
    use super::{bit_error_ratio, nvlink_up};

    #[test]
    fn sleeping_nvlink_counts_as_up() {
        assert_eq!([0, 1, 2, 3].map(nvlink_up), [0.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn a_bit_error_ratio_is_a_mantissa_and_a_power_of_ten() {
        assert!((bit_error_ratio(3 << 8 | 12) - 3e-12).abs() < 1e-24);
        assert!(bit_error_ratio(255).abs() < 1e-200);
    }
}
