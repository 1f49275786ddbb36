"""`saccade serve RUN --ray`: replicas in a Ray cluster behind the same door as a single server."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from saccade.app.cluster.connect import RaySettings, connected, ray_module
from saccade.app.cluster.front import Forwarding
from saccade.app.cluster.replica import Replica
from saccade.app.serve.app import Service
from saccade.app.serve.http.access import token_for
from saccade.app.serve.http.errors import RequestError
from saccade.app.serve.http.guard import Application, Guard, Message
from saccade.app.serve.http.logs import log_plainly
from saccade.app.serve.listening import At, bind
from saccade.app.serve.runs import find_runs
from saccade.app.serve.server import SteadyServer
from saccade.app.serve.settings import ServeSettings

NAME = "saccade"
# How long Ray averages the load, and then waits before a replica comes or goes: its own defaults.
PACE_S = {"look_back_period_s": 30.0, "upscale_delay_s": 30.0, "downscale_delay_s": 600.0}


def serve_on_ray(
    paths: tuple[str, ...],
    settings: ServeSettings,
    at: At,
    how: RaySettings,
    *,
    device: str = "auto",
    verbose: bool = False,
    browser: bool = False,
) -> None:
    """Serve until told to stop. Mistakes that can be seen at once are raised at once."""
    runs = find_runs(paths)
    listener = bind(at.host, at.port)
    lines = log_plainly(verbose=verbose)
    token = token_for(listener.getsockname()[0], at.token)
    service = Service(runs, settings, at.host, token)
    whole = tuple(str(run.path) for run in runs.values())
    with connected(how):
        replicas = Replicas(service, how, (whole, settings, at.host, token, device))
        server = SteadyServer(service, browser=browser, replicas=replicas)
        server.run(sockets=[listener])
        replicas.end()
    lines.drain()
    if server.failure is not None:
        raise server.failure


class Replicas:
    """Deployments of Ray Serve, and the door to them."""

    def __init__(self, service: Service, how: RaySettings, given: tuple[Any, ...]) -> None:
        self._how, self._given = how, given
        self._handle: Any = None
        self._serve, self._ray = ray_module("ray.serve"), ray_module()
        self._deadline = service.settings.deadline_s
        self._service, self._ongoing = service, service.settings.connections
        self._room = service.settings.queue + service.settings.batch  # of a single server
        # Ray Serve says of itself what nobody here has asked.
        logging.getLogger("ray.serve").addFilter(lambda line: line.levelno >= logging.ERROR)

    def application(self) -> Application:
        """The guard of a single server, before all replicas."""
        errors, full = ray_module("ray.exceptions"), ray_module("ray.serve.exceptions")
        inner = Forwarding(
            self._ask,
            lost=(errors.RayActorError, full.DeploymentUnavailableError),
            full=(full.BackPressureError,),
            deadline=self._deadline,
            room=max(self._how.ray_workers, self._how.ray_most) * self._room,
        )
        service = self._service
        asked_by: dict[str, Any] = {"host": service.host, "token": service.token}
        asked_by["images"] = service.takes_images
        return Guard(inner, service.settings, service.batcher, service.metrics, **asked_by)

    async def start(self) -> None:
        """Until all replicas have loaded their runs."""
        self._handle = await asyncio.to_thread(self._deploy)

    def end(self) -> None:
        if self._how.ray_address:  # the cluster stays, and what is ours in it goes
            self._serve.delete(NAME)

    def _deploy(self) -> Any:
        how = self._how
        count: dict[str, Any] = {"num_replicas": how.ray_workers}
        if how.ray_most > how.ray_workers:
            bounds = {"min_replicas": how.ray_workers, "max_replicas": how.ray_most}
            target = {"target_ongoing_requests": self._service.settings.batch}
            count = {"autoscaling_config": {**bounds, **target, **PACE_S}}
        quiet = {"log_level": "ERROR", "enable_access_log": False}
        self._serve.start(http_options={"location": "NoServer"}, logging_config=quiet)
        deployment = self._serve.deployment(
            Replica,
            name=NAME,
            **count,
            max_ongoing_requests=self._ongoing,  # what its line cannot hold it refuses itself
            ray_actor_options={"num_cpus": 1},
            logging_config=quiet,
        )
        application = deployment.bind(*self._given)
        handle = self._serve.run(application, name=NAME, route_prefix=None)
        return handle.options(method_name="answer", stream=True)

    async def _ask(self, scope: dict[str, Any], body: bytes) -> AsyncIterator[Message]:
        if self._handle is None:
            raise RequestError(503, "loading", "replicas are being started", retry_after=1)
        answer = self._handle.remote(scope, body)
        try:
            async for message in answer:
                yield message
        except (asyncio.CancelledError, GeneratorExit):
            answer.cancel()  # nobody waits for it any more, and Ray would let it be computed
            raise
