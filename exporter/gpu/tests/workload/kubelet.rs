//! Pods from a fake kubelet, which speaks the same gRPC on a Unix socket.

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
use pulsetrain_gpu::{
    Gpu, Subject,
    workload::{WorkloadConfig, WorkloadNotice},
};
use tempfile::TempDir;
use tokio::net::UnixListener;

use crate::{
    published::Message,
    world::{Attributed, Machine, gpu, instance},
};

/// The bytes of an answer, or the status of a refusal.
type Answer = Result<Vec<u8>, u32>;

/// A kubelet on its own socket.
struct Kubelet {
    folder: TempDir,
    answer: Arc<Mutex<Answer>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Kubelet {
    fn start(answer: Answer) -> Self {
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

    fn answers(&self, answer: Answer) {
        *self.answer.lock().expect("nobody panics with it") = answer;
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: UnixListener, answer: Arc<Mutex<Answer>>) {
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

fn respond(answer: Answer) -> Response<Body> {
    let mut trailers = HeaderMap::new();
    let mut frame = Vec::new();
    match answer {
        Ok(message) => {
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

/// Returns the answer of a kubelet with these pods.
fn answer(pods: &[Message]) -> Answer {
    let answer = Message::new("ListPodResourcesResponse");
    Ok(answer.parts("pod_resources", pods).into_bytes())
}

/// Returns a pod with devices of a device plugin, and with the other fields that current kubelets send and that are not used
/// here.
fn pod(name: &str, resource: &str, devices: &[&str]) -> Message {
    let given = Message::new("ContainerDevices").text("resource_name", resource);
    let given = devices
        .iter()
        .fold(given, |given, device| given.text("device_ids", device));
    let given = given.part("topology", &node(1));
    let claims = [claimed("network", "nic.example.com", "gpu-4")];
    with_container(name, &container(&[given], &claims))
}

/// Returns a pod that has claimed a device and has no device of a device plugin.
fn claiming(name: &str, device: &str) -> Message {
    with_container(name, &container(&[], &[claimed("gpu", "gpu.nvidia.com", device)]))
}

fn with_container(name: &str, container: &Message) -> Message {
    Message::new("PodResources")
        .text("name", name)
        .text("namespace", "research")
        .part("containers", container)
        .numbers("cpu_ids", &[1, 2])
        .part("memory", &memory())
}

fn container(devices: &[Message], claims: &[Message]) -> Message {
    Message::new("ContainerResources")
        .text("name", "trainer")
        .parts("devices", devices)
        .numbers("cpu_ids", &[1, 2])
        .part("memory", &memory())
        .parts("dynamic_resources", claims)
}

fn memory() -> Message {
    Message::new("ContainerMemory")
        .text("memory_type", "hugepages-2Mi")
        .numbers("size", &[1 << 30])
        .part("topology", &node(0))
}

fn node(id: u64) -> Message {
    let node = Message::new("NUMANode").numbers("ID", &[id]);
    Message::new("TopologyInfo").part("nodes", &node)
}

fn claimed(claim: &str, driver: &str, device: &str) -> Message {
    let cdi = Message::new("CDIDevice").text("name", &format!("k8s.{driver}/device={device}"));
    let resource = Message::new("ClaimResource")
        .part("cdi_devices", &cdi)
        .text("driver_name", driver)
        .text("pool_name", "node-1")
        .text("device_name", device)
        .text("share_id", "b4a2c0de");
    Message::new("DynamicResource")
        .text("claim_name", claim)
        .text("claim_namespace", "default")
        .part("claim_resources", &resource)
}

fn attributed_by(socket: &Path) -> Attributed {
    Attributed::by(WorkloadConfig {
        proc: Machine::new().proc(),
        kubelet: Some(socket.to_owned()),
        ours: None,
    })
}

fn pod_names(name: &str) -> [String; 3] {
    [
        "k8s.namespace.name=research".to_owned(),
        format!("k8s.pod.name={name}"),
        "k8s.container.name=trainer".to_owned(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gpus_are_attributed_to_the_pod_that_the_kubelet_assigned() {
    let kubelet = Kubelet::start(answer(&[
        pod("by-uuid", "nvidia.com/gpu", &["GPU-0000"]),
        pod("by-number", "nvidia.com/gpu", &["nvidia1"]),
        pod("by-instance", "nvidia.com/mig-1g.10gb", &["MIG-7777"]),
        pod("by-time", "nvidia.com/gpu.shared", &["GPU-3333::0"]),
        pod("by-time-too", "nvidia.com/gpu.shared", &["GPU-3333::1"]),
        pod("network", "rdma/hca", &["GPU-4444"]),
    ]));
    let split = Gpu {
        instances: vec![instance(7)],
        ..gpu(2, &[])
    };
    let gpus = [gpu(0, &[]), gpu(1, &[]), split, gpu(3, &[]), gpu(4, &[])];
    let mut known = attributed_by(&kubelet.socket());
    known.until_known(&gpus);
    assert_eq!(known.of_gpu(&gpus[0]), pod_names("by-uuid"));
    assert_eq!(known.of_gpu(&gpus[1]), pod_names("by-number"));
    assert_eq!(known.of_gpu(&gpus[2]), [""; 0]);
    assert_eq!(
        known.labels(Subject::Instance(&gpus[2], &gpus[2].instances[0])),
        pod_names("by-instance")
    );
    let shared = ["k8s.namespace.name=research", "k8s.container.name=trainer"];
    assert_eq!(known.of_gpu(&gpus[3]), shared, "what both pods agree on");
    assert_eq!(known.of_gpu(&gpus[4]), [""; 0], "a network card is no GPU");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gpu_of_a_resource_claim_is_attributed_to_the_claiming_pod() {
    let kubelet = Kubelet::start(answer(&[
        claiming("claimed", "gpu-0"),
        claiming("instance", "gpu-1-mig-19-2-1"),
        pod("network", "rdma/hca", &["mlx5_0"]),
    ]));
    let gpus = [gpu(0, &[]), gpu(1, &[]), gpu(4, &[])];
    let mut known = attributed_by(&kubelet.socket());
    known.until_known(&gpus);
    assert_eq!(known.of_gpu(&gpus[0]), pod_names("claimed"));
    for other in &gpus[1..] {
        assert_eq!(known.of_gpu(other), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pod_assignment_is_refreshed_when_the_processes_change() {
    let kubelet = Kubelet::start(answer(&[pod("first", "nvidia.com/gpu", &["GPU-0000"])]));
    let mut known = attributed_by(&kubelet.socket());
    let idle = [gpu(0, &[])];
    known.until_known(&idle);
    kubelet.answers(answer(&[pod("second", "nvidia.com/gpu", &["GPU-0000"])]));
    let busy = [gpu(0, &[77])];
    known.until(&busy, |known| known.of_gpu(&busy[0]) == pod_names("second"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_kubelet_request_is_reported_once_and_retried() {
    let kubelet = Kubelet::start(Err(7));
    let mut known = attributed_by(&kubelet.socket());
    let idle = [gpu(0, &[])];
    known.until(&idle, |known| !known.notices().is_empty());
    let notices = known.notices();
    let [WorkloadNotice::NoPods { why }] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert_eq!(why, "gRPC status 7: not today");
    kubelet.answers(answer(&[pod("late", "nvidia.com/gpu", &["GPU-0000"])]));
    let busy = [gpu(0, &[77])];
    known.until(&busy, |known| known.of_gpu(&busy[0]) == pod_names("late"));
    assert_eq!(known.notices().len(), 1);
}
