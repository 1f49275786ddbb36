"""How the weights of a pre-norm stack begin (Radford et al. 2019)."""

from torch import nn


def initialise_decoder(model: nn.Module, depth: int) -> None:
    """N(0, 0.02); what writes into the residual stream smaller, so that depth adds up to 1."""
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif parameter.dim() == 2:
            writes = name.endswith(("to_output.weight", "narrow.weight"))
            scale = (2 * depth) ** -0.5 if writes else 1.0
            nn.init.normal_(parameter, std=0.02 * scale)
