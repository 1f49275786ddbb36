"""`saccade serve runs/transformer`: predictions and looks over HTTP, and a page to see them."""

from saccade.app.cli.options import RunArguments
from saccade.app.cluster.connect import RaySettings
from saccade.app.serve.settings import ServeSettings
from saccade.errors import ConfigError

EXTRA = (
    "fastapi",
    "starlette",
    "pydantic",
    "python_multipart",
    "uvicorn",
    "h11",
    "prometheus_client",
)


def serve_command(
    runs: RunArguments = (),
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str = "",
    settings: ServeSettings = ServeSettings(),  # noqa: B008
    ray: RaySettings = RaySettings(),  # noqa: B008
    device: str = "auto",
    verbose: bool = False,
    browser: bool = False,
) -> None:
    """Serve runs over HTTP, with a page that shows where they look.

    The first run is the one that answers requests without a name. Ctrl-C stops the server when
    everything that it has taken on is answered; a second Ctrl-C stops it at once.

    Args:
        runs: folders of the runs.
        host: address to listen on; 127.0.0.1 is reached from this machine only, 0.0.0.0 from all.
        port: port to listen on; 0 takes any that is free.
        token: what clients must know; where others can reach the server, one is made if need be.
        settings: limits.
        ray: replicas in a Ray cluster.
        device: cpu, cuda …; auto takes the fastest there is.
        verbose: print a line for every request.
        browser: open the page when it is ready.
    """
    try:
        from saccade.app.serve.server import At, serve
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in EXTRA:
            raise
        raise ConfigError(
            f"serving needs {missing}, which is not installed: pip install 'saccade[serve]'"
        ) from error
    at = At(host, port, token)
    if ray.ray:
        from saccade.app.cluster.serving import serve_on_ray

        serve_on_ray(runs, settings, at, ray, device=device, verbose=verbose, browser=browser)
        return
    serve(runs, settings, at, device=device, verbose=verbose, browser=browser)
