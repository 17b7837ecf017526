//! Pods, from a kubelet that is none: it speaks the same gRPC on a unix socket.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, Response, body::Bytes, body::Incoming, server::conn::http2, service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use pulsetrain_sources::{
    nvml::{Gpu, Subject},
    workload::{WorkloadConfig, WorkloadNotice},
};
use tempfile::TempDir;
use tokio::net::UnixListener;

use crate::world::{Machine, Said, gpu, instance};

/// `v1.ListPodResourcesResponse` and what is in it (k8s.io/kubelet/pkg/apis/podresources/v1/api.proto).
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, repeated, tag = "1")]
    pods: Vec<PodResources>,
}

#[derive(Clone, PartialEq, Message)]
struct PodResources {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(message, repeated, tag = "3")]
    containers: Vec<ContainerResources>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerResources {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    devices: Vec<ContainerDevices>,
    #[prost(int64, repeated, tag = "3")]
    cpu_ids: Vec<i64>,
    #[prost(message, repeated, tag = "4")]
    memory: Vec<ContainerMemory>,
    #[prost(message, repeated, tag = "5")]
    dynamic_resources: Vec<DynamicResource>,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerMemory {
    #[prost(string, tag = "1")]
    memory_type: String,
    #[prost(uint64, tag = "2")]
    size: u64,
}

#[derive(Clone, PartialEq, Message)]
struct DynamicResource {
    #[prost(string, tag = "2")]
    claim_name: String,
    #[prost(string, tag = "3")]
    claim_namespace: String,
    #[prost(message, repeated, tag = "4")]
    claim_resources: Vec<ClaimResource>,
}

#[derive(Clone, PartialEq, Message)]
struct ClaimResource {
    #[prost(message, repeated, tag = "1")]
    cdi_devices: Vec<CdiDevice>,
    #[prost(string, tag = "2")]
    driver_name: String,
    #[prost(string, tag = "3")]
    pool_name: String,
    #[prost(string, tag = "4")]
    device_name: String,
}

#[derive(Clone, PartialEq, Message)]
struct CdiDevice {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ContainerDevices {
    #[prost(string, tag = "1")]
    resource_name: String,
    #[prost(string, repeated, tag = "2")]
    device_ids: Vec<String>,
    #[prost(message, optional, tag = "3")]
    topology: Option<TopologyInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct TopologyInfo {
    #[prost(message, repeated, tag = "1")]
    nodes: Vec<NumaNode>,
}

#[derive(Clone, PartialEq, Message)]
struct NumaNode {
    #[prost(int64, tag = "1")]
    id: i64,
}

/// A kubelet on a socket of its own.
struct Kubelet {
    folder: TempDir,
    answer: Arc<Mutex<Result<Answer, u32>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Kubelet {
    fn start(answer: Result<Answer, u32>) -> Self {
        let folder = TempDir::new().expect("a folder");
        let listener = UnixListener::bind(folder.path().join("kubelet.sock")).expect("a socket");
        let answer = Arc::new(Mutex::new(answer));
        let serving = tokio::spawn(serve(listener, Arc::clone(&answer)));
        Self {
            folder,
            answer,
            serving,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("kubelet.sock")
    }

    fn says(&self, answer: Answer) {
        *self.answer.lock().expect("nobody panics with it") = Ok(answer);
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: UnixListener, answer: Arc<Mutex<Result<Answer, u32>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let answer = Arc::clone(&answer);
        let service = service_fn(move |request: Request<Incoming>| {
            let answer = answer.lock().expect("nobody panics with it").clone();
            async move {
                assert_eq!(request.uri().path(), "/v1.PodResourcesLister/List");
                assert_eq!(request.headers()["content-type"], "application/grpc");
                let asked = request.into_body().collect().await.expect("a request").to_bytes();
                assert_eq!(
                    asked,
                    Bytes::from_static(&[0; 5]),
                    "an empty message in its frame"
                );
                Ok::<_, Infallible>(respond(answer))
            }
        });
        let connection = http2::Builder::new(TokioExecutor::new());
        tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
    }
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

fn respond(answer: Result<Answer, u32>) -> Response<Body> {
    let mut trailers = HeaderMap::new();
    let mut frame = Vec::new();
    match answer {
        Ok(answer) => {
            let message = answer.encode_to_vec();
            frame.push(0);
            frame.extend((message.len() as u32).to_be_bytes());
            frame.extend(message);
            trailers.insert("grpc-status", "0".parse().expect("a header"));
        }
        Err(code) => {
            trailers.insert("grpc-status", code.into());
            trailers.insert("grpc-message", "not today".parse().expect("a header"));
        }
    }
    let body = Full::new(Bytes::from(frame)).with_trailers(std::future::ready(Some(Ok(trailers))));
    Response::builder()
        .header("content-type", "application/grpc")
        .body(body.boxed())
        .expect("a response")
}

fn pod(name: &str, resource: &str, devices: &[&str]) -> PodResources {
    PodResources {
        name: name.to_owned(),
        namespace: "research".to_owned(),
        containers: vec![ContainerResources {
            name: "trainer".to_owned(),
            devices: vec![ContainerDevices {
                resource_name: resource.to_owned(),
                device_ids: devices.iter().map(|device| (*device).to_owned()).collect(),
                topology: Some(TopologyInfo {
                    nodes: vec![NumaNode { id: 1 }],
                }),
            }],
            cpu_ids: vec![1, 2],
            // What kubelets of today send besides, and nobody here asks for.
            memory: vec![ContainerMemory {
                memory_type: "hugepages-2Mi".to_owned(),
                size: 1 << 30,
            }],
            dynamic_resources: vec![DynamicResource {
                claim_name: "network".to_owned(),
                claim_namespace: "default".to_owned(),
                claim_resources: vec![claimed("nic.example.com", "gpu-4")],
            }],
        }],
    }
}

fn claimed(driver: &str, device: &str) -> ClaimResource {
    ClaimResource {
        cdi_devices: vec![CdiDevice {
            name: format!("k8s.{driver}/device={device}"),
        }],
        driver_name: driver.to_owned(),
        pool_name: "node-1".to_owned(),
        device_name: device.to_owned(),
    }
}

/// A pod that has claimed a device and was given none by a device plugin.
fn claiming(name: &str, device: &str) -> PodResources {
    let mut pod = pod(name, "", &[]);
    let container = &mut pod.containers[0];
    container.devices.clear();
    container.dynamic_resources[0].claim_resources = vec![claimed("gpu.nvidia.com", device)];
    pod
}

fn said_by(socket: &Path) -> Said {
    Said::by(WorkloadConfig {
        proc: Machine::new().proc(),
        kubelet: Some(socket.to_owned()),
        ours: None,
    })
}

fn of(name: &str) -> [String; 3] {
    [
        "k8s.namespace.name=research".to_owned(),
        format!("k8s.pod.name={name}"),
        "k8s.container.name=trainer".to_owned(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gpus_carry_the_pod_that_the_kubelet_gave_them_to() {
    let kubelet = Kubelet::start(Ok(Answer {
        pods: vec![
            pod("by-uuid", "nvidia.com/gpu", &["GPU-0000"]),
            pod("by-number", "nvidia.com/gpu", &["nvidia1"]),
            pod("by-instance", "nvidia.com/mig-1g.10gb", &["MIG-7777"]),
            pod("by-time", "nvidia.com/gpu.shared", &["GPU-3333::0"]),
            pod("by-time-too", "nvidia.com/gpu.shared", &["GPU-3333::1"]),
            pod("network", "rdma/hca", &["GPU-4444"]),
        ],
    }));
    let split = Gpu {
        instances: vec![instance(7)],
        ..gpu(2, &[])
    };
    let gpus = [gpu(0, &[]), gpu(1, &[]), split, gpu(3, &[]), gpu(4, &[])];
    let mut said = said_by(&kubelet.socket());
    said.until_known(&gpus);
    assert_eq!(said.of(Subject::Gpu(&gpus[0])), of("by-uuid"));
    assert_eq!(said.of(Subject::Gpu(&gpus[1])), of("by-number"));
    assert_eq!(said.of(Subject::Gpu(&gpus[2])), [""; 0]);
    assert_eq!(
        said.of(Subject::Instance(&gpus[2], &gpus[2].instances[0])),
        of("by-instance")
    );
    let shared = ["k8s.namespace.name=research", "k8s.container.name=trainer"];
    assert_eq!(said.of(Subject::Gpu(&gpus[3])), shared, "what both pods agree on");
    assert_eq!(
        said.of(Subject::Gpu(&gpus[4])),
        [""; 0],
        "a network card is no GPU"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gpu_that_was_claimed_carries_the_pod_of_the_claim() {
    let kubelet = Kubelet::start(Ok(Answer {
        pods: vec![
            claiming("whole", "gpu-0"),
            claiming("instance", "gpu-1-mig-19-2-1"),
            pod("network", "rdma/hca", &["mlx5_0"]),
        ],
    }));
    let gpus = [gpu(0, &[]), gpu(1, &[]), gpu(4, &[])];
    let mut said = said_by(&kubelet.socket());
    said.until_known(&gpus);
    assert_eq!(said.of(Subject::Gpu(&gpus[0])), of("whole"));
    for other in &gpus[1..] {
        assert_eq!(said.of(Subject::Gpu(other)), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_pod_is_known_when_the_processes_change() {
    let kubelet = Kubelet::start(Ok(Answer {
        pods: vec![pod("first", "nvidia.com/gpu", &["GPU-0000"])],
    }));
    let mut said = said_by(&kubelet.socket());
    let idle = [gpu(0, &[])];
    said.until_known(&idle);
    kubelet.says(Answer {
        pods: vec![pod("second", "nvidia.com/gpu", &["GPU-0000"])],
    });
    let busy = [gpu(0, &[77])];
    said.until(&busy, |said| said.of(Subject::Gpu(&busy[0])) == of("second"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubelet_that_refuses_is_said_once_and_asked_again() {
    let kubelet = Kubelet::start(Err(7));
    let mut said = said_by(&kubelet.socket());
    let idle = [gpu(0, &[])];
    said.until(&idle, |said| !said.notices().is_empty());
    let notices = said.notices();
    let [WorkloadNotice::NoPods { why }] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert_eq!(why, "gRPC status 7: not today");
    kubelet.says(Answer {
        pods: vec![pod("late", "nvidia.com/gpu", &["GPU-0000"])],
    });
    let busy = [gpu(0, &[77])];
    said.until(&busy, |said| said.of(Subject::Gpu(&busy[0])) == of("late"));
    assert_eq!(said.notices().len(), 1);
}
