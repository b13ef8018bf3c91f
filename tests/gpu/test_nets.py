"""Nets on a CUDA device: the CPU's numbers, on torch's memory and streams, without a copy to the host."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from faceplate.models.card import ModelCard
from faceplate.models.catalogue import load_catalogue
from faceplate.models.device import CUDA_PROVIDER, Device, choose_device
from faceplate.models.net import Net
from faceplate.models.random import recognisers, swappers
from faceplate.models.runtimes.opening import open_session
from faceplate.models.runtimes.providers import probe
from faceplate.models.runtimes.samples import difference, sample
from faceplate.models.runtimes.torch_graph import TorchSession

pytestmark = pytest.mark.gpu
CPU = Device("cpu", 0, "a test")
CONTENT = {
    "w600k_r50": recognisers.arcface,
    "inswapper_128": lambda _, width: swappers.SWAPPERS["inswapper_128"](width),
}


def put(folder: Path, model_id: str) -> tuple[ModelCard, Path]:
    path = folder / f"{model_id}.onnx"
    path.write_bytes(CONTENT[model_id](0, 0.2))
    return load_catalogue()[model_id], path


def on(device: Device, card: ModelCard, path: Path, **how: Any) -> Net:
    return Net(card, device, lambda: open_session(card, path, device, 0, **how), path.stat().st_size)


def to_cuda(inputs: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(value).cuda() for name, value in inputs.items()}


def to_arrays(outputs: dict[str, torch.Tensor]) -> dict[str, Any]:
    return {name: value.cpu().numpy() for name, value in outputs.items()}


@pytest.mark.parametrize("model_id", CONTENT)
def test_onnxruntime_on_torchs_memory_gives_what_the_cpu_gives(tmp_path: Path, model_id: str) -> None:
    card, path = put(tmp_path, model_id)
    net, inputs = on(choose_device("cuda"), card, path), sample(card)
    expected = on(CPU, card, path).run(inputs)
    found = net.run_tensors(to_cuda(inputs))
    assert all(value.is_cuda for value in found.values())
    assert net.provider == CUDA_PROVIDER
    assert difference(to_arrays(found), expected).most < 1e-2


def test_runs_on_other_streams_wait_for_each_other(tmp_path: Path) -> None:
    """The input is made late on the caller's stream: a net that did not wait would read what was there before."""
    card, path = put(tmp_path, "w600k_r50")
    net, inputs = on(choose_device("cuda"), card, path), sample(card, 4)
    expected = to_arrays(net.run_tensors(to_cuda(inputs)))
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    given = to_cuda(inputs)["image"]
    torch.cuda.synchronize()
    for _ in range(5):
        with torch.cuda.stream(stream):
            late = torch.zeros_like(given)
            torch.cuda._sleep(50_000_000)  # type: ignore[no-untyped-call]
            late.copy_(given)
            result = net.run_tensors({"image": late})["embedding"]
            copied = result.clone()
        stream.synchronize()
        np.testing.assert_array_equal(copied.cpu().numpy(), expected["embedding"])


def test_a_run_does_not_copy_to_the_host(tmp_path: Path) -> None:
    card, path = put(tmp_path, "w600k_r50")
    net, inputs = on(choose_device("cuda"), card, path), to_cuda(sample(card))
    net.run_tensors(inputs)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as told:
        net.run_tensors(inputs)
        torch.cuda.synchronize()
    assert [event.key for event in told.key_averages() if "DtoH" in event.key or "HtoD" in event.key] == []


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_torch_with_a_captured_graph(tmp_path: Path, precision: str) -> None:
    card, path = put(tmp_path, "inswapper_128")
    model = onnx.load(str(path))
    eager, captured = (TorchSession(model, torch.device("cuda"), precision, graphs=graphs) for graphs in (False, True))
    names = [spec.file_name for spec in card.outputs]
    for seed in (0, 1):
        feed = {spec.file_name: to_cuda(sample(card, seed=seed))[spec.name] for spec in card.inputs}
        (first,), (second,) = eager.run_tensors(names, feed), captured.run_tensors(names, feed)
        torch.testing.assert_close(second, first, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_less_precision_says_its_error(tmp_path: Path, precision: Any) -> None:
    card, path = put(tmp_path, "inswapper_128")
    net = on(choose_device("cuda"), card, path, precision=precision)
    net.load()
    assert net.precision.startswith(f"{precision} (rms error ")
    assert net.provider == ("torch" if precision == "bfloat16" else CUDA_PROVIDER)


def test_a_batch_axis_set_free_gives_the_same(tmp_path: Path) -> None:
    card, path = put(tmp_path, "inswapper_128")
    inputs = to_cuda(sample(card, 3))
    single = to_arrays(on(choose_device("cuda"), card, path).run_tensors(inputs))
    edited = dataclasses.replace(card, batch="edited")
    together = to_arrays(on(choose_device("cuda"), edited, path).run_tensors(inputs))
    assert difference(together, single).most < 1e-2


def test_the_provider_runs_when_tried() -> None:
    assert probe()["cuda"] == ""
