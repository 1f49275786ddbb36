"""A picture as the word before the first."""

import torch

from tests.models.gallery import CAPTIONS, OF, PICTURES, TOLD, build, each, told

EXACT = {"atol": 1e-12, "rtol": 0}


def test_is_torchs_lstm_that_reads_the_mean_of_all_cells_first() -> None:
    model = build(TOLD)
    cells, grid = model.image_encoder(PICTURES)
    rnn = model.rnn.layers[0]
    for caption, of, known in zip(CAPTIONS, OF, each(CAPTIONS, told(model).hidden)):
        mean = sum(cells[of]) / (grid.height * grid.width)
        words = [model.embedding.weight[word] for word in caption]
        expected, _ = rnn(torch.stack([model.project.weight @ mean, *words])[None])
        torch.testing.assert_close(known, expected[0, 1:], **EXACT)


def test_the_picture_enters_once_and_before_the_first_word() -> None:
    model = build(TOLD)
    seen = model.start(PICTURES)
    assert [part.shape for part in seen.rnn] == [(2, 1, 8), (2, 1, 8)]
    with torch.no_grad():
        model.project.weight.zero_()
    first, second = model.start(PICTURES).rnn.hidden
    torch.testing.assert_close(first, second, **EXACT)


def test_dropout_varies_what_goes_in_and_what_comes_out_while_training_alone() -> None:
    model = build(TOLD)
    still = told(model).hidden
    model.dropout.rate = 0.5
    assert torch.equal(told(model).hidden, still)
    model.train().image_encoder.eval()  # its batch norms vary too
    dropped = told(model).hidden
    assert 0.2 < float((dropped == 0).double().mean()) < 0.8
    kept = dropped != 0
    assert not torch.allclose(dropped[kept], 2 * still[kept])  # its input was dropped from too
