"""What a CLIP is trained by: each text is to find its image in the batch, each image its texts."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

NOTHING = -1e9  # the logit of what does not compete: finite, for where nothing does


def equally_right(
    of: Int[Tensor, " T"], said: Int[Tensor, " T"], images: int
) -> Bool[Tensor, "T I"]:
    """Which texts are true of which images: those about them, and those that say the same as one.

    Text t is about image `of[t]`; equal texts have the same number `said`.
    """
    about = of[:, None] == torch.arange(images, device=of.device)  # (T, I)
    same = said[:, None] == said  # (T, T)
    return same.float() @ about.float() > 0


def matching_loss(
    z: Float[Tensor, "T I"], of: Int[Tensor, " T"], right: Bool[Tensor, "T I"]
) -> Float[Tensor, ""]:
    """Symmetric cross-entropy over the batch, in which only what is wrong competes.

        −mean over texts t of  log softmax z(t, ·)[of t] + log softmax z(·, of t)[t],  halved

    The one softmax is over the text's image and all images that it is wrong of; the other over the
    image's text and all texts that are wrong of it. So other texts about the same image, and equal
    ones about another, are not pushed away. With a text to each image it is the published loss.
    """
    wrong = z.masked_fill(right, NOTHING)
    mine = z.gather(1, of[:, None])[:, 0]  # (T,)
    among_images = torch.logaddexp(mine, wrong.logsumexp(dim=1))
    among_texts = torch.logaddexp(mine, wrong.logsumexp(dim=0)[of])
    return (among_images + among_texts - 2 * mine).mean() / 2
