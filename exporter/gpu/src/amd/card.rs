//! A GPU in sysfs: `/sys/class/drm/cardN/device` and the folder of its sensors.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use super::{compute::ComputeNode, metrics_table::MetricsTable};
use crate::{Gpu, Reason, Vendor};

const CARDS: &str = "class/drm";
/// The PCI vendor id of AMD.
const AMD: &str = "0x1002";

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Card {
    /// The folder of the device.
    folder: PathBuf,
    /// The folder of its sensors.
    sensors: Option<PathBuf>,
    /// `0000:0c:00.0`.
    pub(super) pci_address: String,
}

/// Returns the GPUs that the kernel lists, in the order of their PCI addresses. Display outputs and cards of other vendors are
/// left out.
pub(super) fn find(sysfs: &Path) -> Vec<Card> {
    let listed = fs::read_dir(sysfs.join(CARDS)).into_iter().flatten().flatten();
    let mut cards: Vec<Card> = listed
        .filter(|entry| is_card(&entry.file_name().to_string_lossy()))
        .filter_map(|entry| Card::open(entry.path().join("device")))
        .collect();
    cards.sort_by(|a, b| a.pci_address.cmp(&b.pci_address));
    cards
}

/// Returns the version of the driver module, or that of the kernel if the driver is a part of it.
pub(super) fn driver_version(sysfs: &Path) -> String {
    let module = fs::read_to_string(sysfs.join("module/amdgpu/version"));
    let kernel = || fs::read_to_string("/proc/sys/kernel/osrelease");
    let version = module.or_else(|_| kernel()).unwrap_or_default();
    version.trim().to_owned()
}

/// Returns the reason that an error of a file means for its metrics.
pub(super) fn reason(error: &io::Error) -> Reason {
    match error.kind() {
        // The driver answers EOPNOTSUPP or EINVAL for sensors that the GPU does not have.
        ErrorKind::NotFound | ErrorKind::Unsupported | ErrorKind::InvalidInput => Reason::NotSupported,
        ErrorKind::PermissionDenied => Reason::NoPermission,
        // A GPU that sleeps or is being reset.
        ErrorKind::ResourceBusy | ErrorKind::WouldBlock => Reason::NoData,
        _ => Reason::DriverError,
    }
}

fn is_card(name: &str) -> bool {
    name.strip_prefix("card")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Card {
    fn open(folder: PathBuf) -> Option<Self> {
        let mut card = Self {
            pci_address: String::new(),
            sensors: None,
            folder,
        };
        if card.text("vendor").ok()? != AMD || !card.folder.join("mem_info_vram_total").exists() {
            return None;
        }
        let properties = card.text("uevent").ok()?;
        card.pci_address = properties
            .lines()
            .find_map(|line| line.strip_prefix("PCI_SLOT_NAME="))?
            .to_owned();
        let mut sensors = fs::read_dir(card.folder.join("hwmon"))
            .into_iter()
            .flatten()
            .flatten();
        card.sensors = sensors.next().map(|entry| entry.path());
        Some(card)
    }

    /// The static properties of the GPU.
    pub(super) fn gpu(&self, index: u32, node: Option<&ComputeNode>) -> Gpu {
        let text = |file| self.text(file).ok().filter(|text| !text.is_empty());
        let model = || text("device").map(|number| format!("AMD GPU {number}"));
        // The format of ROCR_VISIBLE_DEVICES.
        let uuid = text("unique_id").map(|id| format!("GPU-{id}"));
        let [compute_partition, memory_partition] = self.partitions();
        Gpu {
            vendor: Vendor::Amd,
            index,
            uuid: uuid.unwrap_or_else(|| self.pci_address.clone()),
            name: text("product_name").or_else(model).unwrap_or_default(),
            pci_bus_id: self.pci_address.clone(),
            serial: text("serial_number"),
            vbios_version: text("vbios_version"),
            architecture: node.and_then(ComputeNode::architecture),
            compute_partition,
            memory_partition,
            ..Gpu::default()
        }
    }

    /// Reads a file of the device, without whitespace at its end.
    pub(super) fn text(&self, file: &str) -> io::Result<String> {
        let mut text = fs::read_to_string(self.folder.join(file))?;
        text.truncate(text.trim_end().len());
        Ok(text)
    }

    /// Reads a file of the device as a number.
    pub(super) fn number(&self, file: &str) -> io::Result<f64> {
        number(&self.text(file)?)
    }

    /// Returns the names of the files in a folder of the device.
    pub(super) fn files(&self, folder: &str) -> io::Result<Vec<String>> {
        let listed = fs::read_dir(self.folder.join(folder))?.flatten();
        Ok(listed
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect())
    }

    /// Reads a file of the sensors as a number.
    pub(super) fn sensor(&self, file: &str) -> io::Result<f64> {
        let folder = self.sensors.as_ref().ok_or(ErrorKind::NotFound)?;
        number(fs::read_to_string(folder.join(file))?.trim_end())
    }

    /// Reads a temperature in degrees Celsius by the label of its sensor, such as `temp2_input` for `junction`.
    pub(super) fn temperature(&self, label: &str, suffix: &str) -> io::Result<f64> {
        let folder = self.sensors.as_ref().ok_or(ErrorKind::NotFound)?;
        let has_label = |sensor: &u32| {
            fs::read_to_string(folder.join(format!("temp{sensor}_label")))
                .is_ok_and(|text| text.trim() == label)
        };
        let sensor = (1..=8).find(has_label).ok_or(ErrorKind::NotFound)?;
        // Millidegrees.
        Ok(self.sensor(&format!("temp{sensor}_{suffix}"))? / 1e3)
    }

    /// Reads the table `gpu_metrics`.
    pub(super) fn metrics_table(&self) -> io::Result<MetricsTable> {
        let bytes = fs::read(self.folder.join("gpu_metrics"))?;
        MetricsTable::decode(bytes).ok_or_else(|| ErrorKind::Unsupported.into())
    }

    /// Returns the partition modes of the GPU and of its memory, such as `SPX` and `NPS1`.
    pub(super) fn partitions(&self) -> [Option<String>; 2] {
        let mode = |file| {
            self.text(file)
                .ok()
                .filter(|mode| !mode.is_empty() && mode != "UNKNOWN")
        };
        [
            mode("current_compute_partition"),
            mode("current_memory_partition"),
        ]
    }
}

fn number(text: &str) -> io::Result<f64> {
    text.parse()
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, format!("{text:?} is not a number")))
}
