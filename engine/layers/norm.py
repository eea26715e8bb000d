"""Normalisation layers."""

from torch import Tensor

from engine.layers.context import BuildContext


class RMSNorm:
    """Scale by the root mean square. `unit_offset`: the checkpoint stores the weight less 1."""

    def __init__(self, context: BuildContext, name: str, dim: int, eps: float, unit_offset: bool = False) -> None:
        weight = context.weights.take(f"{name}.weight", (dim,))
        # In float32: 1 + w would lose w's low bits in the model's own dtype.
        self.weight = weight.float() + 1 if unit_offset else weight
        self.eps = eps
        self._ops = context.ops

    def __call__(self, x: Tensor) -> Tensor:
        return self._ops.rms_norm(x, self.weight, self.eps)

    def after_add(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """(normalised sum, sum) of x and residual."""
        return self._ops.add_rms_norm(x, residual, self.weight, self.eps)


class LayerNorm:
    """Layer normalisation, with or without weight and bias."""

    def __init__(self, context: BuildContext, name: str, dim: int, affine: bool = True, eps: float = 1e-5) -> None:
        self.weight = context.weights.take(f"{name}.weight", (dim,)) if affine else None
        self.bias = context.weights.take(f"{name}.bias", (dim,)) if affine else None
        self.eps = eps
        self._ops = context.ops

    def __call__(self, x: Tensor) -> Tensor:
        return self._ops.layer_norm(x, self.weight, self.bias, self.eps)
