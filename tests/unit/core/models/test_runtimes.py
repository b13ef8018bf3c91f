"""Runtimes: the same numbers by all of them, or the difference said; nothing moved to the CPU in silence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from faceplate.errors import DeviceError, ModelError
from faceplate.models import calls
from faceplate.models.card import ModelCard, TensorSpec
from faceplate.models.catalogue import load_catalogue
from faceplate.models.device import Device, choose_device
from faceplate.models.net import Net
from faceplate.models.random import detectors, landmarks, recognisers, restorers, swappers
from faceplate.models.random.graph import RandomGraph
from faceplate.models.runtimes.edit import free_batch, half_precision
from faceplate.models.runtimes.opening import open_session, try_net
from faceplate.models.runtimes.providers import PROVIDERS, obstacle, probe, provider_options
from faceplate.models.runtimes.samples import Error, difference, sample
from faceplate.models.runtimes.torch_graph import TorchSession
from faceplate.models.sessions import SessionPool
from faceplate.models.store import ModelStore

CPU = Device("cpu", 0, "a test")
MAKERS: dict[str, Callable[[], bytes]] = {
    "det_10g": lambda: detectors.scrfd(0, 0.1),
    "yoloface_8n": lambda: detectors.yoloface(0, 0.1),
    "yunet_2023mar": lambda: detectors.yunet(0, 0.1),
    "2dfan4": lambda: landmarks.fan(0, 0.05, stacks=1),
    "fan_68_5": lambda: landmarks.five_to_68(0, 0.1),
    "2d106det": lambda: landmarks.points_106(0, 0.1),
    "w600k_r50": lambda: recognisers.arcface(0, 0.05),
    "crossface_ghost": lambda: recognisers.crossface(0, 0.1),
    "inswapper_128": lambda: swappers.SWAPPERS["inswapper_128"](0.05),
    "gpen_bfr_256": lambda: restorers.RESTORERS["gpen_bfr_256"](0.03),
    "hyperswap_1a_256": lambda: swappers.SWAPPERS["hyperswap_1a_256"](0.05),
}


def put(folder: Path, model_id: str, content: bytes, **changes: Any) -> tuple[ModelCard, Path]:
    path = folder / f"{model_id}.onnx"
    path.write_bytes(content)
    return dataclasses.replace(load_catalogue()[model_id], **changes), path


def run(card: ModelCard, session: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    return Net(card, CPU, lambda: session, 0).run(inputs)


@pytest.mark.parametrize("model_id", MAKERS)
def test_torch_gives_what_onnxruntime_gives(tmp_path: Path, model_id: str) -> None:
    card, path = put(tmp_path, model_id, MAKERS[model_id]())
    inputs = sample(card, side=160)
    reference = run(card, open_session(card, path, CPU, 1), inputs)
    found = run(card, TorchSession(onnx.load(str(path)), torch.device("cpu")), inputs)
    for name, value in reference.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-3, atol=2e-3 * float(np.abs(value).max() + 1e-6))


def test_less_precision_is_said_with_its_error(tmp_path: Path) -> None:
    card, path = put(tmp_path, "gpen_bfr_256", MAKERS["gpen_bfr_256"]())
    session = open_session(card, path, CPU, 1, precision="bfloat16")
    assert session.get_providers() == ["torch"]
    assert session.precision.startswith("bfloat16 (rms error ")
    inputs = sample(card, seed=5)
    error = difference(run(card, session, inputs), run(card, open_session(card, path, CPU, 1), inputs))
    assert 0 < error.rms < 0.1
    assert open_session(card, path, CPU, 1).precision == "float32"


def test_float16_is_nearer_than_bfloat16(tmp_path: Path) -> None:
    card, path = put(tmp_path, "crossface_ghost", MAKERS["crossface_ghost"]())
    inputs = sample(card, seed=5)
    reference = run(card, open_session(card, path, CPU, 1), inputs)
    errors = [
        difference(run(card, open_session(card, path, CPU, 1, precision=precision), inputs), reference).rms
        for precision in ("float16", "bfloat16")
    ]
    assert 0 < errors[0] < errors[1] / 4


def test_sizes_that_a_card_leaves_free_are_the_files(tmp_path: Path) -> None:
    card, path = put(tmp_path, "dfm", swappers.SWAPPERS["dfm"](0.05))
    assert try_net(card, path, CPU, 1) in ("", "edited")


def test_only_nets_that_draw_compute_in_less(tmp_path: Path) -> None:
    from faceplate.models.user import add, look_at

    for model_id in ("gpen_bfr_256", "w600k_r50"):
        _, path = put(tmp_path, model_id, MAKERS[model_id]())
        add(look_at(path), tmp_path / "models", "a test")
    store = ModelStore.of_user(tmp_path / "models")
    with SessionPool(store, "cpu", threads=1, precision="bfloat16") as pool:
        restorer, recogniser = pool.get("gpen_bfr_256"), pool.get("w600k_r50")
        assert (restorer.provider, restorer.precision[:9]) == ("torch", "bfloat16 ")
        assert (recogniser.provider, recogniser.precision) == ("CPUExecutionProvider", "float32")
        with torch.no_grad():
            inputs = {name: torch.from_numpy(value) for name, value in sample(restorer.card).items()}
            assert restorer.run_tensors(inputs)["output"].dtype == torch.float32


def test_less_precision_takes_half_the_memory() -> None:
    model = onnx.load_from_string(MAKERS["w600k_r50"]())
    whole, half = (TorchSession(model, torch.device("cpu"), one).weights_bytes for one in ("float32", "bfloat16"))
    assert half == pytest.approx(whole / 2, rel=0.01)


def test_onnxruntime_has_no_bfloat16(tmp_path: Path) -> None:
    card, path = put(tmp_path, "w600k_r50", MAKERS["w600k_r50"]())
    with pytest.raises(ModelError, match="bfloat16"):
        open_session(card, path, CPU, 1, precision="bfloat16", runtime="onnxruntime")


def test_a_node_that_torch_does_not_know_is_named(tmp_path: Path) -> None:
    card, path = put(tmp_path, "crossface_ghost", MAKERS["crossface_ghost"]())
    model = onnx.load(str(path))
    model.graph.node[0].op_type = "Det"
    with pytest.raises(ModelError, match="operator Det"):
        TorchSession(model, torch.device("cpu"))
    onnx.save(model, str(path))
    with pytest.raises(ModelError):
        open_session(card, path, CPU, 1)


# Batches


@pytest.mark.parametrize("model_id", ["inswapper_128", "hyperswap_1a_256", "2dfan4", "fan_68_5", "crossface_ghost"])
def test_a_fixed_batch_is_set_free_and_gives_the_same(tmp_path: Path, model_id: str) -> None:
    card, path = put(tmp_path, model_id, MAKERS[model_id]())
    assert try_net(card, path, CPU, 1) == "edited"
    edited = dataclasses.replace(card, batch="edited")
    together = Net(edited, CPU, lambda: open_session(edited, path, CPU, 1), 0)
    alone = Net(card, CPU, lambda: open_session(card, path, CPU, 1), 0)
    inputs = sample(card, 3)
    expected = alone.run(inputs)
    for name, value in together.run(inputs).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-4)


def test_a_free_batch_stays_as_it_is(tmp_path: Path) -> None:
    card, path = put(tmp_path, "w600k_r50", MAKERS["w600k_r50"]())
    assert try_net(card, path, CPU, 1) == ""


def mixing_net() -> bytes:
    """Its output is less the mean over the batch: a batch of two is not two of one."""
    graph = RandomGraph(0)
    mean = graph.node("ReduceMean", ["input"], axes=[0], keepdims=1)
    half = graph.node("Mul", [mean, graph.floats(np.float32(0.5))])
    graph.node("Sub", ["input", half], "output")
    return graph.finish("mixing", {"input": (1, 512)}, {"output": (1, 512)})


def test_a_net_that_mixes_its_batch_is_run_one_by_one(tmp_path: Path) -> None:
    card, path = put(tmp_path, "crossface_ghost", mixing_net())
    assert try_net(card, path, CPU, 1) == "single"
    single = dataclasses.replace(card, batch="single")
    found = Net(single, CPU, lambda: open_session(single, path, CPU, 1), 0).run({"embedding": np.ones((3, 512), "f4")})
    assert (found["converted"] == 0.5).all()


def test_reshapes_of_a_fixed_batch_are_found_in_constants_of_both_kinds() -> None:
    graph = RandomGraph(0)
    inner = graph.node("Constant", [], value_ints=[1, 2, 256])
    graph.reshape(graph.node("Reshape", ["input", graph.integers([1, 512])]), (512,), "output")
    graph.node("Reshape", ["input", inner])
    model = onnx.load_from_string(graph.finish("shapes", {"input": (1, 512)}, {"output": (1, 512)}))
    free = free_batch(model, load_catalogue()["crossface_ghost"])
    assert free.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    session = onnxruntime.InferenceSession(free.SerializeToString())
    assert session.run(["output"], {"input": np.ones((4, 512), np.float32)})[0].shape == (4, 512)


def spec(name: str, layout: str, *shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(name, layout, shape, "made", dtype=dtype)


def test_types_and_axes_are_the_files_and_ours_are_float_and_batch() -> None:
    """A weight in float64 without a batch axis, as CodeFormer has it."""
    graph = RandomGraph(0)
    weight = graph.node("Cast", ["weight"], to=onnx.TensorProto.FLOAT)
    graph.node("Mul", ["input", weight], "output")
    content = graph.finish("weighted", {"input": ("N", 4), "weight": (1,)}, {"output": ("N", 4)}, {"weight": "float64"})
    card = dataclasses.replace(
        load_catalogue()["crossface_ghost"],
        inputs=(spec("input", "NV", 4), spec("weight", "V", 1, dtype="float64")),
        outputs=(spec("output", "NV", 4),),
    )
    runs: list[int] = []

    class Counting(onnxruntime.InferenceSession):  # type: ignore[misc]
        def run(self, names: Any, feed: Any, *rest: Any) -> Any:
            runs.append(len(feed["input"]))
            return super().run(names, feed, *rest)

    net = Net(card, CPU, lambda: Counting(content), 0)
    ones = np.ones((3, 4), np.float32)
    same = net.run({"input": ones, "weight": np.full((3, 1), 0.25, np.float32)})
    assert (same["output"] == 0.25).all()
    assert runs == [3]
    each = net.run_tensors({"input": torch.ones(3, 4), "weight": torch.tensor([[1.0], [2.0], [3.0]])})
    assert each["output"][:, 0].tolist() == [1.0, 2.0, 3.0]
    assert runs == [3, 1, 1, 1]


# Tensors


def test_tensors_on_a_cpu_share_memory_and_equal_arrays(tmp_path: Path) -> None:
    card, path = put(tmp_path, "w600k_r50", MAKERS["w600k_r50"]())
    net = Net(card, CPU, lambda: open_session(card, path, CPU, 1), 0)
    image = sample(card, 2)["image"]
    expected = net.run({"image": image})["embedding"]
    given = torch.from_numpy(image)
    assert torch.equal(net.run_tensors({"image": given})["embedding"], torch.from_numpy(expected))
    turned = given.to(memory_format=torch.channels_last)
    assert torch.equal(net.run_tensors({"image": turned})["embedding"], torch.from_numpy(expected))
    with pytest.raises(ModelError, match="on another device"):
        net.run_tensors({"image": torch.empty(2, 3, 112, 112, device="meta")})


@pytest.mark.parametrize("model_id", ["w600k_r50", "det_10g"])
def test_bound_memory_gives_the_same(tmp_path: Path, model_id: str) -> None:
    """The way a GPU goes, on the CPU's memory: outputs of a known shape are torch's, others the runtime's."""
    card, path = put(tmp_path, model_id, MAKERS[model_id]())
    session = open_session(card, path, CPU, 1)
    inputs = sample(card)
    expected = run(card, session, inputs)
    feed = {one.file_name: torch.from_numpy(inputs[one.name]) for one in card.inputs}
    found = calls.bound_run(session, card.outputs, feed, 1)
    for one, value in zip(card.outputs, found, strict=True):
        assert torch.equal(value if one.batched else value[None], torch.from_numpy(expected[one.name]))


class Stream:
    """A CUDA stream that notes who waits for it."""

    def __init__(self, name: str, said: list[str]) -> None:
        self._name, self._said = name, said

    def wait_stream(self, other: Stream) -> None:
        self._said.append(f"{self._name} waits for {other._name}")


def test_streams_are_ordered_by_events_and_the_host_waits_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card, path = put(tmp_path, "w600k_r50", MAKERS["w600k_r50"]())
    session = open_session(card, path, CPU, 1)
    said: list[str] = []
    session.torch_stream = Stream("the net", said)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: Stream("the caller", said))
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda value, _: said.append(f"kept {value.dim()}"))
    options: list[Any] = []
    bound = session.run_with_iobinding

    def noted(binding: Any, run_options: Any = None) -> None:
        said.append("run")
        options.append(run_options)
        bound(binding, run_options)

    monkeypatch.setattr(session, "run_with_iobinding", noted)
    calls.bound_run(session, card.outputs, {"input.1": torch.zeros(1, 3, 112, 112)}, 1)
    assert said == ["the net waits for the caller", "kept 4", "kept 2", "run", "the caller waits for the net"]
    assert options[0].get_run_config_entry("disable_synchronize_execution_providers") == "1"


# Providers


def test_every_provider_of_this_build_is_tried() -> None:
    found = probe()
    assert found["cpu"] == ""
    assert set(found) <= set(PROVIDERS)


@pytest.mark.parametrize("key", [key for key in PROVIDERS if key != "cpu"])
def test_a_provider_that_is_not_there_is_an_error_never_the_cpu(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError) as refused:
        choose_device(f"{key}:0")
    assert refused.value.exit_code == 3
    assert refused.value.found


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_is_installed_and_does_not_run_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["OpenVINOExecutionProvider"])
    if "OpenVINOExecutionProvider" in onnxruntime.capi._pybind_state.get_available_providers():
        pytest.skip("this onnxruntime has OpenVINO")
    assert "took CPUExecutionProvider" in obstacle("openvino")


def test_tensorrt_has_cuda_behind_it_on_the_same_device_and_stream() -> None:
    first, second = provider_options(PROVIDERS["tensorrt"], 1, 77)
    assert first[0] == "TensorrtExecutionProvider"
    assert second[0] == "CUDAExecutionProvider"
    for options in (first[1], second[1]):
        assert (options["device_id"], options["user_compute_stream"]) == ("1", "77")
    assert provider_options(PROVIDERS["cpu"], 0) == ["CPUExecutionProvider"]


@pytest.mark.parametrize(
    ("device", "shown", "torch_name"),
    [
        (Device("cuda", 1, "", "tensorrt"), "tensorrt:1", "cuda:1"),
        (Device("cuda", 0, "", "rocm"), "rocm:0", "cuda:0"),
        (Device("cpu", 0, "", "openvino"), "openvino:0", "cpu"),
        (Device("cpu", 0, "", "coreml"), "coreml", "cpu"),
        (Device("cuda", 2, ""), "cuda:2", "cuda:2"),
    ],
)
def test_where_tensors_lie(device: Device, shown: str, torch_name: str) -> None:
    assert (str(device), device.torch_name) == (shown, torch_name)
    assert device.provider == PROVIDERS[device.runtime].name


def test_half_precision_keeps_what_goes_in_and_out(tmp_path: Path) -> None:
    card, path = put(tmp_path, "w600k_r50", MAKERS["w600k_r50"]())
    model = half_precision(onnx.load(str(path)))
    assert all(one.type.tensor_type.elem_type == 1 for one in (*model.graph.input, *model.graph.output))
    assert any(one.data_type == onnx.TensorProto.FLOAT16 for one in model.graph.initializer)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    inputs = sample(card)
    error = difference(run(card, session, inputs), run(card, open_session(card, path, CPU, 1), inputs))
    assert 0 < error.rms < 0.02


def test_the_error_is_in_the_outputs_own_deviation() -> None:
    reference = {"a": np.array([0.0, 2.0], np.float32)}
    error = difference({"a": np.array([0.0, 2.1], np.float32)}, reference)
    assert error.most == pytest.approx(0.1, rel=1e-4)
    assert error.rms == pytest.approx(0.1 / 2**0.5, rel=1e-4)
    assert str(Error(0.01234, 0.5)) == "rms error 1.2 %, most 50 % of the output's deviation"
