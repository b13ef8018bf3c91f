"""Which nets are taken out of MediaPipe's wheel, and how their results are named and shaped."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...errors import InputError, ModelError
from .attention import ATTENTION_OPERATORS
from .builder import GraphBuilder
from .layers import OPERATORS
from .lowering import Lowering
from .reader import read_tflite
from .refinement import assemble

INPUT = "image"


@dataclass(frozen=True, slots=True)
class Output:
    """A result of the finished net.

    Attributes:
        shape: of one item.
        make: adds the nodes that make it, under the name it is given.
    """

    shape: tuple[int, ...]
    make: Callable[[Lowering, str], None]


def _shaped(tensor: str, shape: tuple[int, ...]) -> Output:
    """The tflite tensor in another shape."""

    def make(low: Lowering, output: str) -> None:
        low.builder.reshape(low.result(tensor), shape, output)

    return Output(shape, make)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One net.

    Attributes:
        member: path of the tflite file in the wheel.
        size: height and width of the input, px.
        outputs: by name.
    """

    member: str
    size: int
    outputs: Mapping[str, Output]


RECIPES: Mapping[str, Recipe] = {
    "face_detector": Recipe(
        "mediapipe/modules/face_detection/face_detection_full_range_sparse.tflite",
        192,
        {"regressors": _shaped("Identity", (2304, 16)), "scores": _shaped("Identity_1", (2304, 1))},
    ),
    "face_mesh": Recipe(
        "mediapipe/modules/face_landmark/face_landmark.tflite",
        192,
        {"landmarks": _shaped("conv2d_21", (468, 3)), "presence": _shaped("conv2d_31", (1,))},
    ),
    "face_mesh_attention": Recipe(
        "mediapipe/modules/face_landmark/face_landmark_with_attention.tflite",
        192,
        {"landmarks": Output((478, 3), assemble), "presence": _shaped("conv_faceflag", (1,))},
    ),
    "iris": Recipe(
        "mediapipe/modules/iris_landmark/iris_landmark.tflite",
        64,
        {
            "eye_contours": _shaped("output_eyes_contours_and_brows", (71, 3)),
            "iris": _shaped("output_iris", (5, 3)),
        },
    ),
    "selfie": Recipe(
        "mediapipe/modules/selfie_segmentation/selfie_segmentation.tflite",
        256,
        {"matte": _shaped("activation_10", (1, 256, 256))},
    ),
}


def convert_net(model_id: str, content: bytes) -> bytes:
    """The ONNX file of one net.

    Args:
        model_id: key of `RECIPES`.
        content: the tflite file.

    Raises:
        ModelError: the file holds something that the converter does not know.
    """
    recipe = RECIPES[model_id]
    builder = GraphBuilder()
    low = Lowering(read_tflite(content), builder, INPUT)
    low.run(OPERATORS | ATTENTION_OPERATORS)
    for name, output in recipe.outputs.items():
        output.make(low, name)
    return builder.model(
        model_id,
        {INPUT: (3, recipe.size, recipe.size)},
        {name: output.shape for name, output in recipe.outputs.items()},
        {
            "source": f"MediaPipe 0.10.21, {recipe.member}",
            "source_sha256": hashlib.sha256(content).hexdigest(),
            "licence": "Apache-2.0",
            "authors": "The MediaPipe Authors",
        },
    )


def convert_mediapipe(source: Path, out: Path) -> dict[str, Path]:
    """See `faceplate.models.convert.convert`."""
    read = _open_source(source)
    out.mkdir(parents=True, exist_ok=True)
    written = {}
    for model_id, recipe in RECIPES.items():
        written[model_id] = out / f"{model_id}.onnx"
        written[model_id].write_bytes(convert_net(model_id, read(recipe.member)))
    return written


def _open_source(source: Path) -> Callable[[str], bytes]:
    if source.is_dir():
        return partial(_read_unpacked, source)
    if zipfile.is_zipfile(source):
        return partial(_read_wheel, source)
    raise InputError(
        f"{source} cannot be converted",
        expected="MediaPipe's wheel or the folder it was unpacked to",
        found="nothing" if not source.exists() else "a file that is no wheel",
        hint="get the wheel with: pip download --no-deps mediapipe==0.10.21",
    )


def _read_unpacked(folder: Path, member: str) -> bytes:
    path = folder / member
    if not path.is_file():
        raise _missing(folder, member)
    return path.read_bytes()


def _read_wheel(wheel: Path, member: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        if member not in archive.namelist():
            raise _missing(wheel, member)
        return archive.read(member)


def _missing(source: Path, member: str) -> ModelError:
    return ModelError(
        f"{source} holds no {member}",
        hint="the nets are in MediaPipe 0.10.21; later wheels hold none",
    )
