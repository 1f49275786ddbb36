"""What the server counts, in the form that Prometheus reads."""

import asyncio
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

ROUTES = ("/", "/v1/predict", "/v1/look", "/health", "/ready", "/metrics", "/info", "/openapi.json")
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class Metrics:
    """The counters of one server; nothing is shared with another in the same process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, gauge = self._counter, self._gauge
        self._requests = counter("requests", "Answers by route and status.", "route", "status")
        self.refusals = counter("refusals", "Requests refused, by code.", "code")
        self.cancelled = counter("cancelled", "Requests given up, by where they were.", "when")
        self.tokens = counter("tokens", "Tokens written, by run.", "run")
        self.steps = counter("steps", "Decoding steps, by run.", "run")
        self.working = 0  # requests for a prediction or a look that are not over
        in_flight = gauge("in_flight", "Requests for a prediction or a look, not yet over.")
        in_flight.set_function(lambda: self.working)
        self.batch_size = self._histogram("batch_size", "Texts decoded together.", SIZES)
        self.decode_seconds = self._histogram("decode_seconds", "Time of a batch.", SECONDS)
        self._queue = gauge("queue_depth", "Requests that wait for their run.")
        tasks = gauge("tasks", "Tasks of the event loop.")
        tasks.set_function(lambda: len(asyncio.all_tasks()))
        ProcessCollector(registry=self.registry)

    def watch_queue(self, depth: Callable[[], int]) -> None:
        """Ask for the depth of the queue whenever someone wants to know."""
        self._queue.set_function(depth)

    def answered(self, path: str, status: int) -> None:
        """Paths that are not ours share one label, or strangers could make any number of them."""
        self._requests.labels(path if path in ROUTES else "other", str(status)).inc()

    def text(self) -> bytes:
        return generate_latest(self.registry)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(name, about, labels, namespace="saccade", registry=self.registry)

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(name, about, namespace="saccade", registry=self.registry)

    def _histogram(self, name: str, about: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, about, namespace="saccade", registry=self.registry, buckets=buckets)
