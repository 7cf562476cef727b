//! Made-up rows that look like those of real systems: same seed, same bytes, no download.
//!
//! Benchmarks and tests include this file by path. Values have the shape that makes logs
//! compress and prune as they do: few templates, many constants of a source, some ids that never
//! repeat, a few rows that come late.

use std::fmt::Write;

/// The kind of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Container logs with the metadata of their pod: 25 fields.
    Kubernetes,
    /// Access log of a web server.
    Web,
    /// Lines of system services.
    Syslog,
    /// Structured logs of a service, with nested members and trace ids.
    Service,
}

/// All kinds.
pub const KINDS: [Kind; 4] = [Kind::Kubernetes, Kind::Web, Kind::Syslog, Kind::Service];

/// The stream fields that fit the rows of every kind.
pub const STREAM_FIELDS: [&str; 5] = ["app", "host", "namespace", "pod", "container"];

/// 2025-06-01T00:00:00Z in seconds.
const START: u64 = 1_748_736_000;

/// `n` rows as NDJSON, three days long.
pub fn rows(seed: u64, n: usize, kind: Kind) -> Vec<u8> {
    let mut rng = Rng::new(seed ^ (kind as u64) << 32);
    let mut out = String::new();
    let step = 3 * 86_400_000_000_000 / (n as u64).max(1);
    for i in 0..n as u64 {
        let late = if rng.one_in(100) { rng.below(30_000_000_000) } else { 0 };
        let nanos = (i * step + rng.below(step.max(1))).saturating_sub(late);
        out.push_str("{\"_time\":\"");
        push_time(&mut out, nanos);
        out.push('"');
        match kind {
            Kind::Kubernetes => kubernetes(&mut out, &mut rng),
            Kind::Web => web(&mut out, &mut rng),
            Kind::Syslog => syslog(&mut out, &mut rng),
            Kind::Service => service(&mut out, &mut rng),
        }
        out.push_str("}\n");
    }
    out.into_bytes()
}

/// A small generator of pseudo-random numbers (SplitMix64).
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of a list, the first ones more often.
    pub fn skewed<'a>(&mut self, list: &[&'a str]) -> &'a str {
        let n = list.len() as u64;
        let (a, b) = (self.below(n), self.below(n));
        list[a.min(b) as usize]
    }
}

/// Appends `,"name":"value"`; the value needs no escapes.
fn text(out: &mut String, name: &str, value: &str) {
    let _ = write!(out, ",\"{name}\":\"{value}\"");
}

/// Appends `,"name":value`.
fn number(out: &mut String, name: &str, value: u64) {
    let _ = write!(out, ",\"{name}\":{value}");
}

fn push_time(out: &mut String, nanos_after_start: u64) {
    let seconds = START + nanos_after_start / 1_000_000_000;
    let day = 1 + (seconds - START) / 86_400;
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let nanos = nanos_after_start % 1_000_000_000;
    let _ = write!(out, "2025-06-{day:02}T{h:02}:{m:02}:{s:02}.{nanos:09}Z");
}

const LEVELS: [&str; 8] = ["info", "info", "info", "info", "debug", "warn", "error", "fatal"];

/// One source of container logs; everything but the rows' own values follows from its number.
fn kubernetes(out: &mut String, rng: &mut Rng) {
    const APPS: [&str; 8] =
        ["checkout", "cart", "search", "gateway", "billing", "users", "mailer", "indexer"];
    let pod = rng.below(40).min(rng.below(40));
    let app = APPS[(pod % 8) as usize];
    let mut fixed = Rng::new(pod);
    let hash = fixed.next();
    text(out, "app", app);
    text(out, "host", &format!("node-{}.cluster.example", pod % 7));
    text(out, "namespace", if pod.is_multiple_of(3) { "payments" } else { "shop" });
    text(out, "pod", &format!("{app}-{:08x}-{:05x}", hash as u32, hash >> 44));
    text(out, "container", app);
    text(out, "cluster", "eu-1");
    text(out, "stream", if rng.one_in(4) { "stderr" } else { "stdout" });
    let id = format!("{:016x}{:016x}", fixed.next(), fixed.next());
    text(out, "kubernetes.docker_id", &id);
    text(out, "kubernetes.pod_id", &format!("{:08x}-4a1b-8c2d", fixed.next() as u32));
    text(out, "kubernetes.pod_ip", &format!("10.{}.{}.7", fixed.below(4), fixed.below(200)));
    text(out, "kubernetes.host_ip", &format!("10.0.0.{}", pod % 7));
    text(out, "kubernetes.container_image", &format!("registry.example/{app}:1.{}.0", pod % 5));
    text(out, "kubernetes.container_hash", &format!("sha256:{id}"));
    for label in ["app", "tier", "release", "pod-template-hash", "team"] {
        let value = if label == "app" { app } else { &id[..8] };
        text(out, &format!("kubernetes.labels.{label}"), value);
    }
    text(out, "kubernetes.annotations.checksum/config", &id);
    text(out, "kubernetes.owner", &format!("{app}-{:08x}", hash as u32));
    text(out, "zone", if pod.is_multiple_of(2) { "a" } else { "b" });
    let level = rng.skewed(&LEVELS);
    text(out, "level", level);
    number(out, "line", 20 + rng.below(300));
    let us = rng.below(900_000);
    let request = rng.next();
    let message = match rng.below(6) {
        0 => format!("connection refused by 10.1.{}.{}:5432, retrying", us % 9, us % 200),
        1 => format!("request {request:016x} finished in {us}us"),
        2 => format!("cache miss for key user:{}", request % 100_000),
        3 => format!("timeout after {}ms waiting for {}", us / 1000, rng.skewed(&APPS)),
        4 => "Starting worker of the queue controller".to_owned(),
        _ => format!("processed batch of {} events, {} failed", us % 500, us % 3),
    };
    text(out, "_msg", &message);
}

fn web(out: &mut String, rng: &mut Rng) {
    const PATHS: [&str; 10] = [
        "/",
        "/login",
        "/cart",
        "/search",
        "/static/app.js",
        "/static/app.css",
        "/api/orders",
        "/api/users",
        "/healthz",
        "/admin",
    ];
    const AGENTS: [&str; 4] = [
        "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/126.0 Safari/537.36",
        "curl/8.5.0",
        "kube-probe/1.30",
    ];
    let host = format!("web-{}", rng.below(3));
    let path = rng.skewed(&PATHS);
    let path = if rng.one_in(3) { format!("{path}?id={}", rng.below(50_000)) } else { path.into() };
    let method = if rng.one_in(5) { "POST" } else { "GET" };
    let status = *[200, 200, 200, 200, 304, 302, 404, 500]
        .get(rng.below(8).min(rng.below(8)) as usize)
        .unwrap_or(&200);
    let client = rng.below(3000).min(rng.below(3000));
    text(out, "app", "nginx");
    text(out, "host", &host);
    text(out, "remote_addr", &format!("198.51.{}.{}", client / 250, client % 250));
    text(out, "method", method);
    text(out, "path", &path);
    number(out, "status", status);
    number(out, "bytes", rng.below(200_000) * rng.below(2) + 120);
    let _ = write!(out, ",\"duration\":\"{}ms\"", rng.below(700).min(rng.below(700)));
    text(out, "user_agent", rng.skewed(&AGENTS));
    text(out, "_msg", &format!("{method} {path} HTTP/1.1"));
}

fn syslog(out: &mut String, rng: &mut Rng) {
    const APPS: [&str; 5] = ["sshd", "systemd", "CRON", "kernel", "dhclient"];
    let app = rng.skewed(&APPS);
    let n = rng.next();
    text(out, "app", app);
    text(out, "host", &format!("srv-{:02}", rng.below(12)));
    text(out, "facility", if app == "sshd" { "auth" } else { "daemon" });
    number(out, "pid", 300 + n % 32_000);
    let address = format!("203.0.113.{}", n % 254);
    let message = match app {
        "sshd" if rng.one_in(2) => {
            format!("Failed password for invalid user admin from {address} port {}", n % 60_000)
        }
        "sshd" => format!("Accepted publickey for deploy from {address} port {} ssh2", n % 60_000),
        "systemd" => format!("Started Session {} of user root.", n % 9000),
        "CRON" => "pam_unix(cron:session): session opened for user root by (uid=0)".to_owned(),
        "kernel" => format!("[{}.{:06}] eth0: link up, 1000 Mbps", n % 90_000, n % 1_000_000),
        _ => format!("DHCPREQUEST of {address} on eth0 to 192.0.2.1 port 67"),
    };
    text(out, "_msg", &message);
}

fn service(out: &mut String, rng: &mut Rng) {
    const OPS: [&str; 6] = ["GetOrder", "PutOrder", "ListUsers", "Charge", "Refund", "Ship"];
    let op = rng.skewed(&OPS);
    let n = rng.next();
    text(out, "app", "orders");
    text(out, "host", &format!("node-{}", rng.below(5)));
    text(out, "level", rng.skewed(&LEVELS));
    text(out, "trace_id", &format!("{:016x}{:016x}", rng.next(), n));
    text(out, "span_id", &format!("{:016x}", rng.next()));
    let attempt = 1 + rng.below(3) * rng.below(2);
    let _ = write!(
        out,
        ",\"request\":{{\"op\":\"{op}\",\"user\":{},\"attempt\":{attempt}}},\"amount\":{}.{:02}",
        n % 5000,
        n % 900,
        n % 100
    );
    number(out, "duration_us", rng.below(80_000).min(rng.below(80_000)));
    let message = match rng.below(4) {
        0 => format!("{op} failed: upstream said \\\"503 busy\\\", attempt {attempt}"),
        1 => format!("{op} of order {} took too long", n % 1_000_000),
        _ => format!("{op} done"),
    };
    text(out, "_msg", &message);
}
