//! What Prometheus reads: how long requests took, by method, route and status.

use std::time::Duration;

use acme_services::api::REQUEST_DURATION;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// The content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds in seconds, as the semantic conventions of OpenTelemetry advise.
const BUCKETS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

type Labels = Vec<(&'static str, String)>;

/// The metrics of this process.
pub struct Metrics {
    registry: Registry,
    requests: Family<Labels, Histogram, fn() -> Histogram>,
    namespace: String,
}

impl Metrics {
    /// Metrics of a service in a namespace; an empty one is left out.
    pub fn new(namespace: &str) -> Metrics {
        let build: fn() -> Histogram = || Histogram::new(BUCKETS);
        let requests = Family::new_with_constructor(build);
        let mut registry = Registry::default();
        registry.register_with_unit(
            REQUEST_DURATION,
            "Duration of HTTP server requests",
            Unit::Seconds,
            requests.clone(),
        );
        Metrics {
            registry,
            requests,
            namespace: namespace.to_owned(),
        }
    }

    /// Counts one request.
    pub fn count(&self, method: &str, route: &str, status: u16, took: Duration) {
        let mut labels: Labels = vec![
            ("http_request_method", method.to_owned()),
            ("http_response_status_code", status.to_string()),
            ("http_route", route.to_owned()),
        ];
        if !self.namespace.is_empty() {
            labels.push(("k8s_namespace_name", self.namespace.clone()));
        }
        self.requests
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    /// All of it in the text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a string has no way to fail; half a text would be refused by whoever reads it.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_under_the_labels_that_detectors_read() {
        let metrics = Metrics::new("shop");
        metrics.count("GET", "/healthz", 200, Duration::from_millis(30));
        metrics.count("GET", "/healthz", 500, Duration::from_millis(30));
        let text = metrics.text();
        let expected = "http_server_request_duration_seconds_count{http_request_method=\"GET\",\
                        http_response_status_code=\"500\",http_route=\"/healthz\",\
                        k8s_namespace_name=\"shop\"} 1";
        assert!(text.contains(expected), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn before_the_first_request_there_is_what_the_description_says() {
        assert_eq!(
            Metrics::new("shop").text(),
            acme_services::api::METRICS_BODY
        );
    }

    #[test]
    fn a_service_that_does_not_know_its_namespace_says_nothing_about_it() {
        let metrics = Metrics::new("");
        metrics.count("GET", "/healthz", 200, Duration::from_millis(30));
        assert!(!metrics.text().contains("namespace"));
    }
}
