"""What is known of a net: where it comes from, what its licence allows, what goes in and what comes out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output of a net; all are float32.

    Attributes:
        name: in the ONNX file.
        layout: a letter an axis, e.g. "NCHW"; N is the batch.
        shape: of one item, without the batch.
        meaning: what the numbers are, with unit and range.
    """

    name: str
    layout: str
    shape: tuple[int, ...]
    meaning: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where the authors published a net.

    Attributes:
        project: name.
        version: of the release.
        url: of the project.
        file: path inside the release.
        sha256: of that file, before our conversion.
    """

    project: str
    version: str
    url: str
    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One net.

    Attributes:
        id: key in the catalogue.
        title: for people.
        role: what Faceplate uses it for: "detector", "landmarks", "iris" or "person_matte".
        file: name of the ONNX file.
        sha256: of the ONNX file, lower-case hex.
        bytes: size of the ONNX file.
        source: where it comes from.
        licence: SPDX identifier of the weights' licence.
        authors: who holds the copyright in the weights.
        commercial: whether the licence allows paid work.
        training_data: what the authors say about the pictures it learnt from.
        colour_order: of the input's channels, e.g. "RGB".
        encoding: of the picture before `mean` and `std`: "display" for sRGB-encoded 0..1.
        mean: subtracted from each channel of the 0..1 picture.
        std: then divided by.
        precision: of weights in the file and of the arithmetic.
        inputs: in the file's order.
        outputs: in the file's order.
        notes: limits and advice.
    """

    id: str
    title: str
    role: str
    file: str
    sha256: str
    bytes: int
    source: Source
    licence: str
    authors: str
    commercial: bool
    training_data: str
    colour_order: str
    encoding: str
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    precision: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    notes: tuple[str, ...]
