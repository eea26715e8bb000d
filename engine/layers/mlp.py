"""Feed-forward layers."""

from torch import Tensor

from engine.layers.context import BuildContext


class GatedMLP:
    """down(activation(gate(x)) * up(x)). `activation` is the name of an op over gate and up side by side."""

    def __init__(
        self, context: BuildContext, name: str, hidden: int, inner: int, activation: str, bias: bool = False
    ) -> None:
        self.gate_up = context.fused_linear([f"{name}.gate_proj", f"{name}.up_proj"], [inner, inner], hidden, bias)
        self.down = context.linear(f"{name}.down_proj", (hidden, inner), bias)
        self._activate = getattr(context.ops, activation)

    def __call__(self, x: Tensor) -> Tensor:
        """x [T, hidden] -> [T, hidden]."""
        return self.down(self._activate(self.gate_up(x)))
