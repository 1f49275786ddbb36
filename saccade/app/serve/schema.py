"""What may be asked for: fields, their types and their caps.

Each field carries its rule in words; the rule is its description in `/openapi.json` and part of
the message when it is broken.
"""

from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from saccade.app.serve.http.errors import RequestError, invalid
from saccade.app.serve.http.strict_json import is_unicode
from saccade.app.serve.settings import ServeSettings

LARGEST_SEED = 2**63 - 1
LONGEST_NAME = 200
MOST_ZOOMS = 16
MOST_BOXES = 100


GIVEN = ("run", "text", "image", "boxes")  # what a request is about
Image = str | bytes  # base64 in JSON; the file itself in a form
Boxes = list[list[float]]  # left, top, right, bottom in pixels


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    def given(self, takes: Literal["text", "image"]) -> Any:
        """What it was sent for a run that takes texts, or images."""
        return dict(self)[takes]


class PredictRequest(_Request):
    """`POST /v1/predict`: translate, go on writing, or describe."""

    run: str | None = None
    text: str | list[str] | None = None
    image: Image | list[Image] | None = None
    boxes: Boxes | None = None
    beam: int | None = None
    n_best: int = 1
    length_penalty: float = 1.0
    sample: bool | None = None
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    count: int = 1
    most_tokens: int | None = None
    threshold: float | None = None
    guidance: float = 1.0
    stream: bool = False

    def changed(self, *, draws: bool) -> list[str]:
        """The names of settings that are other than usual for runs that draw, or do not."""
        usual = {name: field.default for name, field in type(self).model_fields.items()}
        asked = {name: value for name, value in self if name not in GIVEN}
        if self.sample == draws:
            del asked["sample"]
        return [name for name, value in asked.items() if value != usual[name]]


class Zoom(_Request):
    """A head that is wanted exactly."""

    site: str = Field(max_length=LONGEST_NAME)
    head: int = Field(ge=0, le=10_000)


class LookRequest(_Request):
    """`POST /v1/look`: where a run looks."""

    run: str | None = None
    text: str | None = None
    image: Image | None = None
    boxes: Boxes | None = None
    beam: int = 5
    compare: str | None = None
    most_tokens: int = 60
    sample: bool | None = None
    temperature: float | None = None
    seed: int = 0
    of: str | None = None
    threshold: float | None = None
    zoom: list[Zoom] = Field(default_factory=list[Zoom])


R = TypeVar("R", bound=_Request)


class Schemas:
    """The two kinds of requests with the caps of these settings."""

    def __init__(self, settings: ServeSettings) -> None:
        self.predict = _capped(PredictRequest, {**_shared(settings), **_predict(settings)})
        self.look = _capped(LookRequest, {**_shared(settings), **_look(settings)})


Fields = dict[str, tuple[Any, Any]]


def _shared(settings: ServeSettings) -> Fields:
    name = Field(None, max_length=LONGEST_NAME, description="the name of a run that is served here")
    seed = Field(0, ge=0, le=LARGEST_SEED, description="a whole number from 0 to 2⁶³ − 1")
    draw = Field(None, description="true, false or null (as is usual for the run)")
    boxes = Field(
        None,
        max_length=MOST_BOXES,
        description=f"a list of at most {MOST_BOXES} like [left, top, right, bottom] in pixels, "
        "or null",
    )
    least = Field(None, ge=0, le=1, description="a number from 0 to 1, or null (0.5)")
    return {
        "run": (str | None, name),
        "boxes": (Boxes | None, boxes),
        "seed": (int, seed),
        "sample": (bool | None, draw),
        "threshold": (float | None, least),
    }


def _predict(settings: ServeSettings) -> Fields:
    longest, many = settings.text_characters, settings.batch
    text = Field(
        None, description=f"a text of at most {longest} characters, or a list of 1 to {many}"
    )
    image = Field(None, description=f"an image file in base64, or a list of 1 to {many}")
    penalty = Field(1.0, ge=0, le=10, description="a number from 0 to 10")
    top_k = Field(0, ge=0, le=1_000_000, description="a whole number from 0 (no cut) to 1000000")
    top_p = Field(1.0, gt=0, le=1, description="a number above 0 and at most 1")
    guidance = Field(1.0, ge=0, le=100, description="a number from 0 to 100; 1 leaves it out")
    return {
        "text": (str | list[str] | None, text),
        "image": (Image | list[Image] | None, image),
        "beam": (int | None, _whole(None, settings.beam)),
        "n_best": (int, _whole(1, settings.n_best)),
        "length_penalty": (float, penalty),
        "temperature": (float, _temperature(1.0)),
        "top_k": (int, top_k),
        "top_p": (float, top_p),
        "guidance": (float, guidance),
        "count": (int, _whole(1, settings.count)),
        "most_tokens": (int | None, _whole(None, settings.most_tokens)),
        "stream": (bool, Field(False, description="true or false")),
    }


def _look(settings: ServeSettings) -> Fields:
    text = Field(None, description=f"a text of at most {settings.text_characters} characters")
    image = Field(None, description="one image file, in JSON as base64")
    compare = Field(None, max_length=LONGEST_NAME, description="the name of a second run, or null")
    of = Field(
        None, max_length=LONGEST_NAME, description="the class whose traces to look for, or null"
    )
    most = Field(
        min(60, settings.most_tokens),
        ge=0,
        le=settings.most_tokens,
        description=f"a whole number from 0 to {settings.most_tokens}",
    )
    zoom = Field(
        default_factory=list[Zoom],
        max_length=MOST_ZOOMS,
        description=f'a list of at most {MOST_ZOOMS} like {{"site": "decoder.0.self", "head": 0}}',
    )
    return {
        "text": (str | None, text),
        "image": (Image | None, image),
        "beam": (int, _whole(min(5, settings.beam), settings.beam)),
        "compare": (str | None, compare),
        "of": (str | None, of),
        "most_tokens": (int, most),
        "temperature": (float | None, _temperature(None)),
        "zoom": (list[Zoom], zoom),
    }


def _whole(default: int | None, most: int) -> Any:
    return Field(default, ge=1, le=most, description=f"a whole number from 1 to {most}")


def _temperature(default: float | None) -> Any:
    return Field(default, gt=0, le=100, description="a number above 0 and at most 100")


def _capped(base: type[R], caps: Fields) -> type[R]:
    values: Any = caps
    return create_model(base.__name__, __base__=base, __doc__=base.__doc__, **values)


def check(schema: type[R], value: Any, settings: ServeSettings) -> R:
    """The request that a JSON value asks for, or a refusal that names field and rule."""
    if not isinstance(value, dict):
        raise invalid("the body must be a JSON object", None)
    try:
        asked = schema.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise _refusal(schema, first["type"], first["loc"], first["input"]) from error
    takes: tuple[Literal["text", "image"], ...] = ("text", "image")
    for field in takes:
        given = asked.given(field)
        if isinstance(given, list) and not 1 <= len(given) <= settings.batch:
            message = f"{field} holds {len(given)} {field}s; there may be 1 to {settings.batch}"
            raise invalid(message, field)
    _check_text(asked.given("text"), settings)
    return asked


def _check_text(text: str | list[str] | None, settings: ServeSettings) -> None:
    """Characters are counted before anything looks at them."""
    for one in [text] if isinstance(text, str) else text or ():
        if len(one) > settings.text_characters:
            most = settings.text_characters
            message = f"the text has {len(one)} characters; there may be {most}"
            raise RequestError(422, "too_long", message, field="text")
        if not is_unicode(one):
            raise invalid("the text holds half of a surrogate pair; send whole characters", "text")


def _refusal(
    schema: type[BaseModel], kind: str, place: tuple[int | str, ...], value: Any
) -> RequestError:
    field = str(place[0]) if place else None
    known = schema.model_fields
    if field is None or field not in known:
        there = ", ".join(known)
        return invalid(f"{str(field)[:60]!r} is not a field; there are: {there}", str(field)[:60])
    rule = known[field].description
    if kind == "missing" and len(place) == 1:
        return invalid(f"{field} is missing; it must be {rule}", field)
    return invalid(f"{field}={_shown(value)} must be {rule}", field)


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) > 10**40:
        return "(a number of more than 40 digits)"
    if isinstance(value, list) and any(isinstance(one, bytes) for one in value):
        return f"({len(value)} files)"
    text = ascii(value[:40] if isinstance(value, str | bytes | list) else value)
    return text if len(text) <= 40 else f"{text[:40]}…"
