//! The fake NVML, checked through the real wrapper: tests on a fake that differs from its declaration would prove nothing.

mod buffers;
mod driver;
mod events;
mod faults;
mod first_look;
mod handles;
mod health;
mod instances;
mod links;
mod older;
mod profiling;
mod scenarios;
mod versions;
