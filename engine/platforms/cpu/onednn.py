"""Linears whose weight oneDNN reorders once. The only file that calls these internal torch ops."""

from collections.abc import Callable

import torch
from torch import Tensor

from engine.ops.table import OpSpec, Provider


def _unsupported(spec: OpSpec) -> list[str]:
    reasons = []
    if not torch.backends.mkldnn.is_available():
        reasons.append("torch was built without oneDNN")
    elif not all(hasattr(torch.ops.mkldnn, op) for op in ("_reorder_linear_weight", "_linear_pointwise")):
        reasons.append(f"torch {torch.__version__} has no prepacked linear")
    if spec.dtype not in ("float32", "bfloat16"):
        reasons.append(f"oneDNN packs float32 and bfloat16, not {spec.dtype}")
    elif spec.dtype == "bfloat16" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        reasons.append("this processor has no bfloat16 dot products")
    return reasons


def linear(weight: Tensor, bias: Tensor | None = None) -> Callable[[Tensor], Tensor]:
    """As the portable op. Rows of the result have equal bits at every T, which MKL's do not."""
    packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())
    apply = torch.ops.mkldnn._linear_pointwise
    return lambda x: apply(x, packed, bias, "none", [], "")


PROVIDER = Provider(op="linear", name="onednn", unsupported=_unsupported, load=lambda: linear)
