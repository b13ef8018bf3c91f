"""Figures of the neural engine, on nets of the true signature and size with random weights, with InsightFace's own code
beside it on the same nets.

Times are of the working thread's processor on a CPU, which other programs on the machine do not lengthen, and of the
clock on a GPU. Both sides run one thread, and take turns.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import SettingError
from ..face import Identity
from ..jobs.analyse import plate_view
from ..jobs.engines import make_engine, torch_device
from ..jobs.spec import Workbench
from ..models.card import ModelCard
from ..models.device import Device
from ..models.sessions import Net, SessionPool
from ..nets.base import TensorNet
from ..nets.detectors.scrfd import Scrfd
from ..nets.recognisers.arcface import ArcFace
from ..nets.swappers.base import Swapper
from ..nets.templates import cut, five_points
from ..pipeline import FacePipeline
from ..swap.neural.engine import NeuralEngine
from .figures import Figures
from .net_scene import CROP_PX, DETECTOR, RECOGNISER, SWAPPER, Scene, make_nets, make_scene, somebody

_RUNS = 5
_FEW_RUNS = 2
_FACES = 6


class Timed:
    """A net that adds up its own time.

    Args:
        net: the net.
        clock: seconds.
    """

    def __init__(self, net: TensorNet, clock: Callable[[], float]) -> None:
        self._net = net
        self._clock = clock
        self.seconds = 0.0

    @property
    def card(self) -> ModelCard:
        """See `TensorNet`."""
        return self._net.card

    @property
    def device(self) -> Device:
        """See `TensorNet`."""
        return self._net.device

    def run_tensors(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """See `TensorNet`."""
        start = self._clock()
        outputs = self._net.run_tensors(inputs)
        self.seconds += self._clock() - start
        return outputs


class _TimedSession:
    """onnxruntime's session, as InsightFace gets it, likewise."""

    def __init__(self, session: Any, clock: Callable[[], float]) -> None:
        self._session = session
        self._clock = clock
        self.seconds = 0.0

    def run(self, names: Any, feed: Any) -> Any:
        start = self._clock()
        outputs = self._session.run(names, feed)
        self.seconds += self._clock() - start
        return outputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class _Peer:
    """InsightFace's classes on the same sessions.

    Raises:
        SettingError: InsightFace is not installed.
    """

    def __init__(self, pool: SessionPool, clock: Callable[[], float]) -> None:
        try:
            from insightface.model_zoo.arcface_onnx import ArcFaceONNX
            from insightface.model_zoo.inswapper import INSwapper
            from insightface.model_zoo.retinaface import RetinaFace
        except ImportError as error:
            raise SettingError(
                "--nets random measures beside InsightFace, which is not installed",
                found=str(error),
                hint="pip install --no-deps insightface==2.1",
            ) from error
        self.sessions = {name: _TimedSession(_session(pool, name), clock) for name in (SWAPPER, DETECTOR, RECOGNISER)}
        files = {name: str(pool.store.path(name)) for name in self.sessions}
        self.swapper = INSwapper(files[SWAPPER], session=self.sessions[SWAPPER])
        self.detector = RetinaFace(files[DETECTOR], session=self.sessions[DETECTOR])
        self.detector.prepare(0, input_size=(640, 640))
        self.recogniser = ArcFaceONNX(files[RECOGNISER], session=self.sessions[RECOGNISER])

    def swap(self, scene: Scene, who: Identity) -> Any:
        """`INSwapper.get`: the whole picture with the face pasted."""
        target = SimpleNamespace(kps=(five_points(scene.landmarks).numpy() - 0.5).astype(np.float32))
        return self.swapper.get(scene.codes, target, SimpleNamespace(normed_embedding=who.embeddings[RECOGNISER]))

    def whole(self, scene: Scene, who: Identity) -> Any:
        """Detect, embed, swap, paste."""
        self.detector.detect(scene.codes)
        self.recogniser.get(
            scene.codes, SimpleNamespace(kps=(five_points(scene.landmarks).numpy() - 0.5).astype(np.float32))
        )
        return self.swap(scene, who)


def _session(pool: SessionPool, model_id: str) -> Any:
    """onnxruntime's own, as InsightFace would open it but for the threads, which are ours."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(pool.store.path(model_id)), options, providers=[pool.device.provider])


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Ours:
    """Our side."""

    pipeline: FacePipeline
    swapper: Timed
    detector: Scrfd
    recogniser: ArcFace

    def whole(self, scene: Scene, who: Identity) -> Any:
        """Detect, embed, swap: what InsightFace's `_Peer.whole` does, in float."""
        view = plate_view(self.pipeline.config, scene.frame)
        small = torch.from_numpy(view.overview(640)).permute(2, 0, 1)[None].to(self.pipeline.device)
        self.detector.detect(small.contiguous())
        points = five_points(scene.landmarks)
        crop = torch.from_numpy(_recogniser_crop(view, self.recogniser, points)).permute(2, 0, 1)[None]
        self.recogniser.embed(crop.contiguous().to(self.pipeline.device))
        return self.pipeline.process(scene.frame, [scene.task(who, boost=1)])


def _recogniser_crop(view: Any, recogniser: ArcFace, points: torch.Tensor) -> NDArray[np.float32]:
    from ..nets.templates import inverted

    side = recogniser.size
    found: NDArray[np.float32] = view.sample(inverted(recogniser.place(points)).numpy(), (side, side))
    return found


def _ours(bench: Workbench, pool: SessionPool, clock: Callable[[], float]) -> _Ours:
    engine = make_engine(SWAPPER, dataclasses.replace(bench, nets=pool))
    assert isinstance(engine, NeuralEngine)
    swapper: Swapper = engine.swapper
    timed = Timed(swapper.net, clock)
    swapper.net = timed
    device = torch_device(bench)
    return _Ours(
        FacePipeline(bench.config, engine, device), timed, Scrfd(pool.get(DETECTOR)), ArcFace(pool.get(RECOGNISER))
    )


def _clock_for(bench: Workbench) -> Callable[[], float]:
    """Seconds of this thread's work; on a GPU of the clock, when all that was queued is done."""
    if bench.nets.device.kind == "cpu":
        return time.thread_time

    def waited() -> float:
        torch.cuda.current_stream().synchronize()
        return time.perf_counter()

    return waited


def _spent(clock: Callable[[], float], work: Callable[[], object]) -> float:
    start = clock()
    work()
    return clock() - start


def around(ours: _Ours, peer: _Peer, scene: Scene, clock: Callable[[], float], runs: int) -> Figures:
    """Everything but the net over the net, one face; InsightFace's `INSwapper.get` beside it, taking turns.

    The result goes into memory that is there already, as in a server's slot; the whole frame is copied into it.
    """
    who, rows, out = somebody(), [], np.empty_like(scene.frame.pixels)
    session = peer.sessions[SWAPPER]
    task = scene.task(who, boost=1)
    for _ in range(runs + 1):
        ours.swapper.seconds = session.seconds = 0.0
        mine = _spent(clock, lambda: ours.pipeline.process(scene.frame, [task], out=out))
        theirs = _spent(clock, lambda: peer.swap(scene, who))
        rows.append((ours.swapper.seconds, mine, session.seconds, theirs))
    net, whole, their_net, their_whole = np.array(rows[1:]).T  # the first warms up
    return {
        "net ms": _ms(net),
        "around it ms": _ms(whole - net),
        "around / net": round(float(np.median((whole - net) / net)), 4),
        "INSwapper.get around it ms": _ms(their_whole - their_net),
        "INSwapper.get around / net": round(float(np.median((their_whole - their_net) / their_net)), 4),
        "theirs / ours around the net": round(float(np.median((their_whole - their_net) / (whole - net))), 1),
    }


def whole_frame(ours: _Ours, peer: _Peer, scene: Scene, clock: Callable[[], float], runs: int) -> Figures:
    """Detect, embed, swap and paste: InsightFace's time over ours."""
    who, rows = somebody(), []
    for _ in range(runs + 1):
        mine = _spent(clock, lambda: ours.whole(scene, who))
        rows.append((mine, _spent(clock, lambda: peer.whole(scene, who))))
    ours_s, peer_s = np.array(rows[1:]).T
    return {
        "ours ms": _ms(ours_s),
        "InsightFace ms": _ms(peer_s),
        "InsightFace / ours": round(float(np.median(peer_s / ours_s)), 3),
    }


def batches(ours: _Ours, scene: Scene, clock: Callable[[], float]) -> Figures:
    """Pixel boost 4 x 4 over 16 single runs; six faces of one frame over six frames with one."""
    people = [somebody(seed) for seed in range(_FACES)]
    tasks = [dataclasses.replace(scene.task(who, boost=1), track=track) for track, who in enumerate(people)]
    pipeline, frame = ours.pipeline, scene.frame
    single = _spent(clock, lambda: [pipeline.process(frame, [task]) for task in tasks])
    together = _spent(clock, lambda: pipeline.process(frame, tasks))
    boosted = _spent(clock, lambda: pipeline.process(frame, [scene.task(people[0], boost=4)]))
    one = single / _FACES
    return {
        "boost 4 x 4 / 16 single runs": round(boosted / (16 * one), 3),
        "6 faces in one frame / 6 single": round(together / single, 3),
    }


def precision_error(fast: Net, exact: Net, scene: Scene) -> Figures:
    """A swapper's picture in another precision against float32: the same crop and person."""
    from ..swap.neural.place import find_crop

    square = find_crop(scene.landmarks, "arcface_128", 128)
    picture = torch.from_numpy(scene.codes[..., ::-1].astype(np.float32) / 255).permute(2, 0, 1).contiguous()
    crop = cut(picture, square.placement, 128)[None].to(exact.device.torch_name)
    inputs = {"target": crop, "source": torch.from_numpy(somebody().embeddings[RECOGNISER])[None].to(crop.device)}
    given, wanted = (net.run_tensors(inputs)["output"] for net in (fast, exact))
    apart = (given - wanted).abs()
    return {
        "error rms, of 0..1": round(float(apart.square().mean().sqrt()), 5),
        "error max, of 0..1": round(float(apart.max()), 4),
        "picture's deviation": round(float(wanted.std()), 4),
    }


def run_net_bench(bench: Workbench, folder: Path, width: float = 1.0) -> Iterator[tuple[str, Figures]]:
    """Measure one figure after another.

    Args:
        bench: device, colour.
        folder: for the nets, 1 GB.
        width: of the nets; less than 1 shows that the figures can be had, and nothing else.

    Yields:
        (title, figures).
    """
    store, clock = make_nets(folder, width), _clock_for(bench)
    device = bench.nets.device
    yield "device", {"device": str(device), "provider": device.provider, "nets": f"random, width {width:g}"}
    with SessionPool(store, device, threads=1) as pool:
        ours, peer = _ours(bench, pool, clock), _Peer(pool, clock)
        scenes = {size: make_scene(*size) for size in CROP_PX}
        for (wide, high), scene in scenes.items():
            title = f"{wide}x{high}, face of {CROP_PX[wide, high] / 2:.0f} px"
            yield f"{title}: time around the net, one face", around(ours, peer, scene, clock, _RUNS)
            yield f"{title}: whole frame, float32", whole_frame(ours, peer, scene, clock, _RUNS)
        small = scenes[1920, 1080]
        yield "batches, 1920x1080", batches(ours, small, clock)
        with SessionPool(store, device, threads=1, precision="bfloat16") as fast:
            quick = _ours(bench, fast, clock)
            error = precision_error(fast.get(SWAPPER), pool.get(SWAPPER), small)
            figures = whole_frame(quick, peer, small, clock, _FEW_RUNS)
            yield "whole frame 1920x1080, swapper in bfloat16", {**figures, **error}
        if device.kind == "cuda":
            for size, scene in scenes.items():
                yield f"GPU {size[0]}x{size[1]}", gpu_table(ours, scene)


def gpu_table(ours: _Ours, scene: Scene, frames: int = 64, threads: int = 4) -> Figures:
    """Frames a second with several frames in flight, copies a frame, and the share of the time the GPU sits idle."""
    from concurrent.futures import ThreadPoolExecutor

    from torch.profiler import ProfilerActivity, profile

    task = scene.task(somebody(), boost=1)
    ours.pipeline.process(scene.frame, [task])
    with ThreadPoolExecutor(threads) as pool, profile(activities=[ProfilerActivity.CUDA]) as seen:
        start = time.perf_counter()
        made = list(pool.map(lambda _: ours.pipeline.process(scene.frame, [task]), range(frames)))
        wall = time.perf_counter() - start
    busy = sum(event.self_device_time_total for event in seen.key_averages()) / 1e6
    return {
        "frames/s": round(frames / wall, 1),
        "copies up a frame": statistics.mean(one.copies["up"] for one in made),
        "copies down a frame": statistics.mean(one.copies["down"] for one in made),
        "MB up a frame": round(statistics.mean(one.copies["bytes_up"] for one in made) / 1e6, 2),
        "MB down a frame": round(statistics.mean(one.copies["bytes_down"] for one in made) / 1e6, 2),
        "idle": round(max(0.0, 1.0 - busy / wall), 3),
    }


def _ms(seconds: NDArray[np.float64]) -> float:
    return round(1000 * float(np.median(seconds)), 2)
