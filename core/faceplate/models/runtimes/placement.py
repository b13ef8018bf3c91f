"""Which nodes of a net onnxruntime left to the CPU although another device was asked for.

onnxruntime gives the CPU what a provider has no kernel for, without a word. It has a switch against that
(`session.disable_cpu_ep_fallback`), which also refuses the arithmetic on shapes that providers leave to the CPU on
purpose, because it is faster there: nets that are all right would not open. So the nodes are asked for by their
provider (`session.record_ep_graph_assignment_info`, onnxruntime 1.24), and those that only compute shapes are let pass.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...errors import DeviceError

RECORD = "session.record_ep_graph_assignment_info"
"""Key of the session's configuration; versions that do not know it take no notice."""

_CPU = "CPUExecutionProvider"
_SHAPES = (
    "Add And Cast Ceil Concat Constant ConstantOfShape Div Equal Expand Flatten Floor Gather Greater GreaterOrEqual "
    "Identity Less LessOrEqual Loop If Max Min Mod Mul Neg Not Or Range ReduceMax ReduceMin ReduceProd ReduceSum "
    "Reshape ScatterElements ScatterND Shape Size Slice Split Squeeze Sub Tile Transpose Unsqueeze Where "
    "MemcpyFromHost MemcpyToHost"
)
"""What graphs compute shapes with. Nothing here convolves, multiplies matrices, resizes or normalises."""


def on_cpu(session: Any) -> Counter[str] | None:
    """How many nodes of each operator run on the CPU; None where this onnxruntime does not tell."""
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return None
    return Counter(
        node.op_type
        for part in session.get_provider_graph_assignment_info()
        if part.ep_name == _CPU
        for node in part.get_nodes()
    )


def checked(session: Any, name: str, device: str) -> str:
    """What is to be said of where a net runs, "" where all of it is on the device that was asked for.

    Args:
        session: opened with `RECORD` set.
        name: of the net, for people.
        device: that was asked for, not the CPU.

    Raises:
        DeviceError: part of its work is on the CPU.
    """
    nodes = on_cpu(session)
    if nodes is None:
        return "this onnxruntime does not tell which nodes run on the CPU"
    shapes = _SHAPES.split()
    work = {operator: count for operator, count in sorted(nodes.items()) if operator not in shapes}
    if work:
        raise DeviceError(
            f"part of model {name} would run on the CPU, not on {device}",
            expected="all operators on the device; shapes alone may be computed on the CPU",
            found=", ".join(f"{count} x {operator}" for operator, count in work.items()),
            hint="choose another provider or the device cpu, or export the net with operators that this one knows",
        )
    total = nodes.total()
    return f"{total} nodes that compute shapes on the CPU" if total else ""
