"""LoRA on the linear layers of a toy model."""

import torch
from torch import nn

from rewriting.runtime.language_models.lora import add_lora, lora_config


class Toy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.output = nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2)

    def forward(self, x_BD: torch.Tensor) -> torch.Tensor:
        return self.output(self.norm(self.first(x_BD)))


def trainable(model: nn.Module) -> list[str]:
    return [name for name, parameter in model.named_parameters() if parameter.requires_grad]


def test_linear_layers_get_matrices_and_the_rest_is_frozen() -> None:
    model, x_BD = Toy(), torch.ones(1, 4)
    before = model(x_BD)
    add_lora(model, 2, alpha=4)
    assert torch.equal(model(x_BD), before)  # until trained it changes nothing
    assert {name.split(".")[0] for name in trainable(model)} == {"first", "output"}
    assert all("lora_" in name for name in trainable(model))


def test_a_layer_can_be_left_out() -> None:
    model = Toy()
    add_lora(model, 2, alpha=4, leave_out=model.output)
    assert {name.split(".")[0] for name in trainable(model)} == {"first"}


def test_names_of_layers_or_all_of_them() -> None:
    assert lora_config(2, ["a", "b"], alpha=4).target_modules == {"a", "b"}
    config = lora_config(2, "all-linear", alpha=4, task="CAUSAL_LM")
    assert (config.target_modules, config.r, config.lora_alpha) == ("all-linear", 2, 4)
