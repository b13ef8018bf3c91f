"""What is known of a net: where it comes from, what its licence allows, what goes in and what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Commercial = bool | Literal["unknown"]
"""Whether weights may be used for paid work; "unknown" where nobody who may say so has said it."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input or output of a net, as Faceplate sees it; `Net` casts to and from float32.

    Attributes:
        name: that adapters use.
        layout: a letter an axis, e.g. "NCHW"; N is the batch. Without N the file has no batch axis there.
        shape: of one item, without the batch; 0 for a length that follows the input.
        meaning: what the numbers are, with unit and range.
        node: name in the ONNX file, "" for `name`.
        dtype: in the ONNX file: "float32", "float16", "float64" or "int64".
    """

    name: str
    layout: str
    shape: tuple[int, ...]
    meaning: str
    node: str = ""
    dtype: str = "float32"

    @property
    def file_name(self) -> str:
        """Name in the ONNX file."""
        return self.node or self.name

    @property
    def batched(self) -> bool:
        """Whether the file has a batch axis there."""
        return "N" in self.layout


@dataclass(frozen=True, slots=True)
class Source:
    """Where the authors published a net.

    Attributes:
        project: name.
        url: of the project.
        version: of the release, "" where there are none.
        file: path inside the release, "" where the file itself is what is published.
        sha256: of that file, before our conversion; "" where nothing was converted.
    """

    project: str
    url: str
    version: str = ""
    file: str = ""
    sha256: str = ""

    def __str__(self) -> str:
        release = f"{self.project} {self.version}".strip()
        return f"{release}, {self.file}" if self.file else f"{release}, {self.url}"


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One net: one that ships, one that a user has added, or one that is known and not here (no `sha256`).

    Attributes:
        id: key in the catalogue.
        title: for people.
        role: what Faceplate uses it for: "detector", "landmarks", "iris", "person_matte", "recogniser", "converter",
            "swapper", "restorer", "upscaler", "matte", "editor".
        source: where it comes from.
        licence: SPDX identifier or name of the weights' licence, as their authors state it.
        authors: who holds the copyright in the weights.
        commercial: whether the licence allows paid work.
        training_data: what the authors say about the pictures it learnt from.
        colour_order: of the input's channels, "RGB" or "BGR".
        encoding: of the picture before `mean` and `std`: "display" for sRGB-encoded 0..1; "none" for no picture.
        mean: subtracted from each channel of the 0..1 picture, in the order R, G, B.
        std: then divided by.
        precision: of weights in the file and of the arithmetic.
        inputs: in the file's order.
        outputs: in the file's order.
        notes: limits and advice.
        file: name of the ONNX file.
        sha256: of the ONNX file, lower-case hex; "" for a net that is known and not here.
        bytes: size of the ONNX file; 0 for a net that is known and not here.
        kind: the adapter that serves it, "" for the nets of Faceplate's own analysis.
        template: where eyes, nose and mouth lie in its crop, a name of `nets.templates`; "" for no crop.
        size: side of its square crop, px; 0 for any or none.
        embedding: space of the identity vector that it takes (swapper) or gives (recogniser, converter); "" for none.
        embedding_from: space that a converter takes.
        output_range: values of the output picture's black and white.
        files: names that the file goes by.
        hashes: SHA-256 of files that are published, so that a file of any name is known.
        training_licence: of what it learnt from, as far as it is known.
        path: of the file, where it stays outside the model folder.
        batch: how several items are run at once: "" as the file allows, "edited" with its batch axis set free (tried
            when it was added), "single" one after the other.
        valid_until: last day on which `commercial` holds, ISO date; "" for no end.
    """

    id: str
    title: str
    role: str
    source: Source
    licence: str
    authors: str
    commercial: Commercial
    training_data: str
    colour_order: str
    encoding: str
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    precision: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    notes: tuple[str, ...]
    file: str = ""
    sha256: str = ""
    bytes: int = 0
    kind: str = ""
    template: str = ""
    size: int = 0
    embedding: str = ""
    embedding_from: str = ""
    output_range: tuple[float, float] = (0.0, 1.0)
    files: tuple[str, ...] = ()
    hashes: tuple[str, ...] = ()
    training_licence: str = ""
    path: str = ""
    batch: str = ""
    valid_until: str = ""

    @property
    def is_here(self) -> bool:
        """Whether a file belongs to the card: it ships, or a user has added it."""
        return bool(self.sha256)
