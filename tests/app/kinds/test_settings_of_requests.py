"""What a request asks for is used by its run's kind, or refused by name: nothing is passed over."""

import pytest

from saccade.app.kinds import HOMES, kind_named
from saccade.app.serve.http.errors import RequestError
from saccade.app.serve.schema import GIVEN, PredictRequest

OTHERS = {
    "beam": 3,
    "n_best": 2,
    "length_penalty": 0.5,
    "temperature": 0.5,
    "top_k": 7,
    "top_p": 0.5,
    "seed": 1,
    "count": 2,
    "most_tokens": 9,
    "threshold": 0.1,
    "guidance": 2.0,
    "stream": True,
}


def test_these_are_all_settings() -> None:
    assert {*OTHERS, "sample", *GIVEN} == PredictRequest.model_fields.keys()


@pytest.mark.parametrize("name", HOMES)
def test_each_setting_is_used_or_refused(name: str) -> None:
    serving = kind_named(name).serving
    settings = {**OTHERS, "sample": not serving.draws}
    assert serving.uses <= settings.keys()
    serving.refuse("mine", PredictRequest(text="a", sample=serving.draws))
    for field, value in settings.items():
        request = PredictRequest.model_validate({"text": "a", field: value})
        if field in serving.uses:
            serving.refuse("mine", request)
            continue
        with pytest.raises(RequestError, match=f"mine {serving.does}: ") as refused:
            serving.refuse("mine", request)
        assert refused.value.field == field
