"""The routes of the server."""

import asyncio
import dataclasses
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

import saccade
from saccade.app.look.html import page_html
from saccade.app.serve.batcher import Batcher, Job
from saccade.app.serve.http.access import client_of
from saccade.app.serve.http.errors import GoneError, RequestError, internal, to_json
from saccade.app.serve.http.guard import Application, Guard
from saccade.app.serve.http.stream import EventStream, Waiting
from saccade.app.serve.image_decoder import ImageDecoder
from saccade.app.serve.jobs import look_job, predict_job
from saccade.app.serve.metrics import Metrics
from saccade.app.serve.requests import FORM, READER, ReadRequest, RequestBody
from saccade.app.serve.runs import ServedRun
from saccade.app.serve.schema import LookRequest, PredictRequest, Schemas
from saccade.app.serve.settings import ServeSettings

# The page carries its own policy, which names its program by its hash; this adds what only a
# header can say.
PAGE_POLICY = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'"
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"


@dataclass
class Service:
    """All that the routes need to know."""

    runs: dict[str, ServedRun]
    settings: ServeSettings
    host: str = "127.0.0.1"
    token: str = ""
    metrics: Metrics = field(default_factory=Metrics)
    decoder: ImageDecoder = field(default_factory=ImageDecoder)
    batcher: Batcher = field(init=False)
    schemas: Schemas = field(init=False)

    def __post_init__(self) -> None:
        self.batcher = Batcher(self.settings, self.metrics)
        self.schemas = Schemas(self.settings)

    @property
    def takes_images(self) -> bool:
        return any(run.serving.takes == "image" for run in self.runs.values())

    def not_ready(self) -> RequestError | None:
        """Why this server should get no requests now."""
        failed = [f"{run.name}: {run.failed}" for run in self.runs.values() if run.failed]
        if failed:
            return RequestError(503, "not_loaded", "; ".join(failed))
        loading = [run.name for run in self.runs.values() if run.model is None]
        if loading:
            message = f"loading {', '.join(loading)}"
            return RequestError(503, "loading", message, retry_after=1)
        if self.batcher.stopping:
            return RequestError(503, "stopping", "the server is stopping", retry_after=5)
        if hung := self.batcher.hung:
            return RequestError(503, "hung", f"no answer from {', '.join(hung)}", retry_after=5)
        return None


def make_app(service: Service) -> Application:
    """The whole server as an ASGI application."""
    app = FastAPI(
        title="Saccade",
        version=saccade.__version__,
        docs_url=None,  # its page would be fetched from elsewhere; the schema is our own
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_page(app)
    _add_status(app, service)
    _add_work(app, service)
    _add_errors(app, service)
    metrics, batcher = service.metrics, service.batcher
    asked_by = {"host": service.host, "token": service.token}
    return Guard(app, service.settings, batcher, metrics, **asked_by, images=service.takes_images)


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = value if isinstance(value, bytes) else to_json(value)
    given = {"Content-Security-Policy": DATA_POLICY, **(headers or {})}
    return Response(body, status_code=status, headers=given, media_type="application/json")


def _add_page(app: FastAPI) -> None:
    html = page_html(None, served=True)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:  # pyright: ignore[reportUnusedFunction]
        headers = {"Content-Security-Policy": PAGE_POLICY}
        return Response(html, media_type="text/html", headers=headers)


def _add_status(app: FastAPI, service: Service) -> None:
    @app.get("/health", summary="Whether the process lives")
    async def health() -> Response:  # pyright: ignore[reportUnusedFunction]
        return _json({"status": "alive"})

    @app.get("/ready", summary="Whether it can take requests")
    async def ready() -> Response:  # pyright: ignore[reportUnusedFunction]
        if refusal := service.not_ready():
            raise refusal
        return _json({"status": "ready"})

    @app.get("/metrics", summary="Counters for Prometheus")
    async def metrics() -> Response:  # pyright: ignore[reportUnusedFunction]
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Response(service.metrics.text(), headers={"Content-Type": kind})

    @app.get("/info", summary="Runs, limits and version")
    async def info() -> Response:  # pyright: ignore[reportUnusedFunction]
        runs = [run.info() for run in service.runs.values()]
        limits = dataclasses.asdict(service.settings)
        return _json({"runs": runs, "limits": limits, "version": saccade.__version__})


def _add_work(app: FastAPI, service: Service) -> None:
    schemas, settings = service.schemas, service.settings

    @app.post("/v1/predict", summary="Translate, write or describe", **_body(schemas.predict))
    async def predict(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        visit = Visit(service, request)
        asked = await visit.read(schemas.predict)
        waiting = visit.submit(asked.run.name, predict_job(asked, settings, visit.id))
        if asked.wanted.stream:
            return EventStream(waiting, request)
        predictions = await waiting.answer(request.receive)
        return _json({"run": asked.run.name, "predictions": predictions, "id": visit.id})

    @app.post("/v1/look", summary="Where a run looks", **_body(schemas.look))
    async def look(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        visit = Visit(service, request)
        asked = await visit.read(schemas.look)
        waiting = visit.submit(asked.run.name, look_job(asked, settings, visit.id))
        return _json(await waiting.answer(request.receive))


class Visit:
    """A request on its way through the lines, with one deadline for all of it."""

    def __init__(self, service: Service, request: Request) -> None:
        self._service, self._request = service, request
        self.id: str = request.state.request_id
        self._client = client_of(request.scope)
        self._taken = False  # once it has waited in a line, no other refuses it
        self._ends = asyncio.get_running_loop().time() + service.settings.deadline_s

    async def read(self, schema: type[PredictRequest] | type[LookRequest]) -> ReadRequest:
        """What is asked for; images and large bodies are read by a thread of their own."""
        request, service = self._request, self._service
        body, kind = await request.body(), request.headers["content-type"]
        reading = RequestBody(body, kind, schema, service.runs, service.settings, service.decoder)
        asked = reading.at_once()
        if asked is None:
            waiting = self.submit(READER, Job(reading, name=self.id))
            asked = await waiting.answer(request.receive)
        return asked

    def submit(self, line: str, job: Job) -> Waiting:
        batcher, settings = self._service.batcher, self._service.settings
        job.client, job.ends = self._client, self._ends
        batcher.submit(line, job, taken=self._taken)
        self._taken = True
        return Waiting(line, job, batcher, settings, self._ends)


def _body(schema: type[BaseModel]) -> dict[str, Any]:
    """The body is read by hand, more strictly than FastAPI does; here it is described."""
    described = {"schema": schema.model_json_schema()}
    content = {"application/json": described, FORM: described}
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}}


def _add_errors(app: FastAPI, service: Service) -> None:
    """Whatever is raised becomes an answer in one shape."""

    async def refused(request: Request, error: Exception) -> Response:
        if isinstance(error, GoneError):
            return Response(status_code=499)  # nobody reads it, but it is counted
        if isinstance(error, HTTPException):
            error = _from_router(request, error)
        elif not isinstance(error, RequestError):
            error = internal()  # the guard hears of the error itself, and logs it
        service.metrics.refusals.labels(error.code).inc()
        return _json(error.body(request.state.request_id), error.status, error.headers)

    for kind in (RequestError, GoneError, HTTPException, Exception):
        app.add_exception_handler(kind, refused)


def _from_router(request: Request, error: HTTPException) -> RequestError:
    path, headers = ascii(request.url.path)[1:-1][:60], dict(error.headers or {})
    if error.status_code == 404:
        return RequestError(404, "not_found", f"there is nothing at {path}", headers=headers)
    message = f"{request.method[:20]} is not possible at {path}"
    return RequestError(error.status_code, "method", message, headers=headers)
