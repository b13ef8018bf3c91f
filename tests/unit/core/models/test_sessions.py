"""Nets run where they were asked to, say so, and their failures are ours."""

import dataclasses
import errno
import hashlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime
import pytest
import torch

from faceplate.errors import DeviceError, DeviceMemoryError, FaceplateError, LicenceError, ModelError
from faceplate.models.catalogue import load_catalogue
from faceplate.models.device import CPU_PROVIDER, CUDA_PROVIDER, choose_device
from faceplate.models.memory import is_out_of_memory
from faceplate.models.runtimes import opening
from faceplate.models.sessions import Net, SessionPool
from faceplate.models.store import ModelStore

SHIPPED = tuple(card.id for card in load_catalogue().values() if card.is_here)


@pytest.fixture
def pretend_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch and onnxruntime say that there are two CUDA devices; sessions still get none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA_PROVIDER, CPU_PROVIDER])


@pytest.fixture
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch says that there is no CUDA device."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def picture(net: Net, batch: int = 1, seed: int = 0) -> dict[str, Any]:
    """A made input."""
    shape = (batch, *net.card.inputs[0].shape)
    return {"image": np.random.default_rng(seed).random(shape, np.float32)}


@pytest.mark.parametrize("model_id", SHIPPED)
def test_outputs_are_those_on_the_card(pool: SessionPool, model_id: str) -> None:
    net = pool.get(model_id)
    result = net.run(picture(net, 3))
    assert list(result) == [spec.name for spec in net.card.outputs]
    for spec in net.card.outputs:
        assert result[spec.name].shape == (3, *spec.shape)
        assert result[spec.name].dtype == np.float32
        assert np.isfinite(result[spec.name]).all()


@pytest.mark.parametrize("model_id", SHIPPED)
def test_batch_equals_singles_exactly(pool: SessionPool, model_id: str) -> None:
    net = pool.get(model_id)
    images = picture(net, 4)["image"]
    batch = net.run({"image": images})
    for i in range(4):
        single = net.run({"image": images[i : i + 1]})
        for name, value in single.items():
            np.testing.assert_array_equal(batch[name][i : i + 1], value)


def test_importing_loads_no_heavy_package() -> None:
    code = "import sys, faceplate.models.sessions, faceplate.models.convert; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "onnxruntime", "onnx", "tflite"} & set(result.stdout.split())


def test_net_is_loaded_once(pool: SessionPool) -> None:
    assert pool.get("selfie") is pool.get("selfie")
    assert pool.get("selfie") in pool.loaded


def test_input_need_not_be_contiguous(pool: SessionPool) -> None:
    net = pool.get("iris")
    image = picture(net)["image"]
    rows_last = np.asfortranarray(image)
    np.testing.assert_array_equal(net.run({"image": rows_last})["iris"], net.run({"image": image})["iris"])


def test_threads_share_a_pool_and_its_nets() -> None:
    results: dict[int, list[np.ndarray[Any, Any]]] = {}
    nets: set[int] = set()
    start = threading.Barrier(4)

    with SessionPool(device="cpu", threads=1) as pool:

        def work(seed: int) -> None:
            start.wait()
            net = pool.get("iris")
            nets.add(id(net))
            results[seed] = [net.run(picture(net, seed=seed))["iris"] for _ in range(10)]

        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(nets) == 1
        for seed in range(4):
            expected = pool.get("iris").run(picture(pool.get("iris"), seed=seed))["iris"]
            assert all(np.array_equal(result, expected) for result in results[seed])


def test_closed_pool_loads_nothing() -> None:
    with SessionPool(device="cpu") as pool:
        pool.get("selfie").warm_up()
    assert pool.loaded == ()
    with pytest.raises(RuntimeError, match="closed"):
        pool.get("selfie")


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"picture": np.zeros((1, 3, 64, 64), np.float32)},
        {"image": np.zeros((1, 64, 64, 3), np.float32)},
        {"image": np.zeros((3, 64, 64), np.float32)},
        {"image": np.zeros((0, 3, 64, 64), np.float32)},
        {"image": np.zeros((1, 3, 64, 64), np.float64)},
    ],
)
def test_wrong_input_is_refused(pool: SessionPool, inputs: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="got"):
        pool.get("iris").run(inputs)


def test_cpu_is_taken_when_asked_for() -> None:
    with SessionPool(device="cpu") as pool:
        assert str(pool.device) == "cpu"
        assert pool.get("selfie").provider == CPU_PROVIDER


@pytest.mark.usefixtures("no_cuda")
def test_auto_takes_the_cpu_and_says_why() -> None:
    device = choose_device("auto")
    assert (str(device), device.reason) == ("cpu", "auto: torch sees no CUDA device")


def test_auto_takes_the_cpu_when_onnxruntime_lacks_cuda(pretend_cuda: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CPU_PROVIDER])
    assert choose_device("auto").reason == "auto: onnxruntime has no CUDA provider"


@pytest.mark.usefixtures("pretend_cuda")
def test_cuda_is_taken_when_there() -> None:
    assert str(choose_device("auto")) == "cuda:0"
    assert str(choose_device("cuda")) == "cuda:0"
    assert str(choose_device("cuda:1")) == "cuda:1"
    assert choose_device("cuda:1").provider == CUDA_PROVIDER


@pytest.mark.usefixtures("pretend_cuda")
def test_cuda_device_that_is_not_there() -> None:
    with pytest.raises(DeviceError, match="2 CUDA device"):
        choose_device("cuda:2")


@pytest.mark.usefixtures("no_cuda")
def test_cuda_asked_for_where_there_is_none() -> None:
    with pytest.raises(DeviceError) as refused:
        SessionPool(device="cuda:0")
    assert refused.value.found == "torch sees no CUDA device"
    assert "cpu" in str(refused.value.hint)


@pytest.mark.parametrize("request_", ["gpu", "cuda:", "cuda:-1", "CPU", ""])
def test_device_that_is_no_device(request_: str) -> None:
    with pytest.raises(DeviceError, match="not understood"):
        choose_device(request_)


@pytest.mark.usefixtures("pretend_cuda")
@pytest.mark.filterwarnings("ignore:Specified provider")
def test_session_that_lands_on_the_cpu_in_silence_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CUDA, onnxruntime itself only warns and takes the CPU."""
    monkeypatch.setattr(opening, "own_stream", lambda _: None)
    if CUDA_PROVIDER in onnxruntime.capi._pybind_state.get_available_providers():
        pytest.skip("this onnxruntime has CUDA")
    with SessionPool(device="cuda:0") as pool, pytest.raises(DeviceError, match="did not get the device") as refused:
        pool.get("selfie")
    assert refused.value.found == CPU_PROVIDER


def failing_net(pool: SessionPool, error: Exception) -> Net:
    """A net whose session raises."""

    class Session:
        def run(self, *_: object) -> None:
            raise error

        def get_providers(self) -> list[str]:
            return [CPU_PROVIDER]

    net = pool.get("iris")
    return Net(net.card, net.device, Session, 1000)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Failed to allocate memory for requested buffer of size 4294967296", DeviceMemoryError),
        ("bad allocation", DeviceMemoryError),
        ("std::bad_alloc", DeviceMemoryError),
        ("CUDA failure 2: out of memory ; GPU=0", DeviceMemoryError),
        ("Available memory of 1024 is smaller than requested bytes of 4096", DeviceMemoryError),
        ("Non-zero status code returned while running Conv node", ModelError),
    ],
)
def test_failures_of_a_run_are_mapped(pool: SessionPool, said: str, kind: type[FaceplateError]) -> None:
    net = failing_net(pool, RuntimeError(said))
    with pytest.raises(kind) as raised:
        net.warm_up()
    assert type(raised.value) is kind
    assert raised.value.found == said
    assert raised.value.hint


def test_memory_that_really_runs_out_is_a_device_error(pool: SessionPool) -> None:
    """One small picture, seen as a batch that no machine has the memory for."""
    net = pool.get("face_mesh")
    one = np.zeros((1, 3, 192, 192), np.float32)
    huge = np.broadcast_to(one, (2**30, 3, 192, 192))
    with pytest.raises(DeviceMemoryError, match="too little memory"):
        net.run({"image": huge})


def test_a_net_that_was_let_go_comes_back_with_the_same_bytes() -> None:
    used: list[str] = []
    with SessionPool(device="cpu", threads=1, used=lambda net: used.append(net.card.id)) as pool:
        net = pool.get("face_mesh")
        image = picture(net, 2)
        before = net.run(image)
        assert net.unload()
        assert not net.is_loaded
        assert pool.loaded == ()
        after = net.run(image)
        assert pool.loaded == (net,)
        assert pool.get("face_mesh") is net
    assert {name: value.tobytes() for name, value in before.items()} == {n: v.tobytes() for n, v in after.items()}
    assert used == ["face_mesh"] * 3


def test_a_net_at_work_is_not_let_go(pool: SessionPool) -> None:
    entered, go = threading.Event(), threading.Event()

    class Session:
        def run(self, *_: object) -> list[Any]:
            entered.set()
            assert go.wait(10)
            return [np.zeros((1, 213), np.float32), np.zeros((1, 15), np.float32)]

        def get_providers(self) -> list[str]:
            return [CPU_PROVIDER]

    card = pool.get("iris").card
    net = Net(card, pool.device, Session, 1000)
    thread = threading.Thread(target=net.warm_up)
    thread.start()
    assert entered.wait(10)
    assert not net.unload()
    go.set()
    thread.join()
    assert net.unload()


def test_the_size_of_a_net_grows_with_its_largest_batch() -> None:
    with SessionPool(device="cpu", threads=1) as pool:
        net = pool.get("face_mesh")
        values = sum(int(np.prod(spec.shape)) for spec in (*net.card.inputs, *net.card.outputs))
        assert net.size == 2 * net.card.bytes + 8 * 4 * values
        net.run(picture(net, 3))
        net.run(picture(net, 2))
        assert net.size == 2 * net.card.bytes + 8 * 4 * values * 3


def test_memory_is_known_by_type_word_and_cause() -> None:
    wrapped = ModelError("a")
    wrapped.__cause__ = MemoryError()
    yes = [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        np._core._exceptions._ArrayMemoryError((1,), np.dtype("f4")),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        cv2.error("OpenCV: Insufficient memory (Failed to allocate 9 bytes)"),
        DeviceMemoryError("a"),
        wrapped,
    ]
    assert [error for error in yes if not is_out_of_memory(error)] == []
    no = [
        DeviceError("lost"),
        RuntimeError("CUDA error: an illegal memory access"),
        OSError("out of memory"),
        KeyError(1),
    ]
    assert [error for error in no if is_out_of_memory(error)] == []


def write_net(folder: Path, change: Callable[[bytes], bytes]) -> ModelStore:
    """A store with one changed net and a card that agrees with its hash."""
    card = load_catalogue()["selfie"]
    content = change(ModelStore().path("selfie").read_bytes())
    (folder / "changed.onnx").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    changed = dataclasses.replace(card, file="changed.onnx", bytes=len(content), sha256=digest)
    return ModelStore([folder], {"selfie": changed})


def test_file_that_is_no_net(tmp_path: Path) -> None:
    store = write_net(tmp_path, lambda content: b"not a net" + content)
    with SessionPool(store, "cpu") as pool, pytest.raises(ModelError, match="failed to load"):
        pool.get("selfie")


def test_net_with_another_signature(tmp_path: Path) -> None:
    store = write_net(tmp_path, lambda content: content.replace(b"matte", b"natte"))
    with SessionPool(store, "cpu") as pool, pytest.raises(ModelError, match="not those on its card") as refused:
        pool.get("selfie")
    assert "natte" in str(refused.value.found)


def test_commercial_pool_refuses_non_commercial_weights() -> None:
    card = dataclasses.replace(load_catalogue()["selfie"], commercial=False)
    store = ModelStore(catalogue={"selfie": card})
    with SessionPool(store, "cpu", commercial=True) as pool, pytest.raises(LicenceError):
        pool.get("selfie")
