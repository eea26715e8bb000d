"""What the layers of one model are built with."""

from collections.abc import Callable

import msgspec
import torch
from torch import Tensor

from engine.ops.table import Ops
from engine.weights.reader import WeightReader


class BuildContext(msgspec.Struct, frozen=True):
    """The checkpoint to take tensors from, the chosen ops, and the longest position that will be asked for."""

    weights: WeightReader
    ops: Ops
    dtype: torch.dtype
    device: torch.device
    max_model_len: int

    def linear(self, name: str, shape: tuple[int, int], bias: bool = False) -> Callable[[Tensor], Tensor]:
        """The linear of `name`.weight [out, in] and, where it has one, `name`.bias [out]."""
        weight = self.weights.take(f"{name}.weight", shape)
        return self.ops.linear(weight, self.weights.take(f"{name}.bias", shape[:1]) if bias else None)

    def fused_linear(
        self, names: list[str], outputs: list[int], inputs: int, bias: bool = False
    ) -> Callable[[Tensor], Tensor]:
        """One linear whose output is those of `names`, side by side in this order."""
        weights = [
            self.weights.take(f"{name}.weight", (size, inputs)) for name, size in zip(names, outputs, strict=True)
        ]
        biases = [self.weights.take(f"{name}.bias", (size,)) for name, size in zip(names, outputs, strict=True) if bias]
        return self.ops.linear(torch.cat(weights), torch.cat(biases) if bias else None)

    def shared_linear(self, weight: Tensor) -> Callable[[Tensor], Tensor]:
        """A linear over a tensor that another layer keeps too, such as a tied embedding."""
        return self.ops.linear(weight)
