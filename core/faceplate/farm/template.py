"""A job as an Open Job Description template (specification 2023-09, with its extension TASK_CHUNKING).

Steps: `First` analyses the shot and renders its first frame, so that what is wrong with the job is known before many
machines are busy with it; `Frames` renders chunks, each session with a warm server of its own; `Movie` puts frames into
a movie; `Check` looks at the result. Every task is the plain command line: what it does twice comes out the same.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..colour.spaces import ColourConfig
from ..errors import SettingError
from ..jobs.words import ApplyWords
from ..media.atomic import atomic_write, output_error
from ..media.formats import is_movie
from ..plate import Plate, open_plate

SPECIFICATION = "jobtemplate-2023-09"
TEMPLATE_FILE = "template.json"
PARAMETERS_FILE = "parameters.json"
VALUES_FILE = "parameter_values.json"
_SERVER = "{{Session.WorkingDirectory}}/fp"
_NOTIFY_S = 120
"""Seconds that a task has for finishing its frames when it is cancelled."""
_NO_NAME = re.compile(r"[\x00-\x1f\x7f{}]")


@dataclass(frozen=True, slots=True)
class FarmNeeds:
    """What a machine must have, and how frames are shared out.

    Attributes:
        chunk: frames of a task.
        chunk_seconds: where not 0, how long a task should take; the farm then chooses the frames itself.
        cores: at least.
        memory_mib: at least.
        gpus: at least; 0 for work on the CPU.
        gpu_memory_mib: of each.
        program: what is run.
    """

    chunk: int = 20
    chunk_seconds: int = 0
    cores: int = 2
    memory_mib: int = 4096
    gpus: int = 0
    gpu_memory_mib: int = 0
    program: str = "faceplate"


@dataclass(slots=True)
class _Parameters:
    """Parameters of the template with their values."""

    definitions: list[dict[str, Any]] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, kind: str, value: Any, description: str, **more: Any) -> str:
        """Define a parameter; the text that stands for it. Paths have no default: that would have to be relative."""
        definition = {"name": name, "type": kind, "description": description, **more}
        if kind != "PATH":
            definition["default"] = value
        self.definitions.append(definition)
        self.values[name] = value
        return f"{{{{Param.{name}}}}}"

    def folder_and_name(self, name: str, path: str, flow: str, what: str) -> str:
        """A pattern in two parts, since farms map folders and know no patterns."""
        folder, file = os.path.split(path)
        first = self.add(
            f"{name}Folder", "PATH", folder, f"Folder of the {what}", objectType="DIRECTORY", dataFlow=flow
        )
        return f"{first}/{self.add(f'{name}Name', 'STRING', file, f'File name or pattern of the {what}')}"

    def file(self, name: str, path: str, what: str) -> str:
        """One file that is read."""
        return self.add(name, "PATH", path, what, objectType="FILE", dataFlow="IN")


def farm_range(numbers: Sequence[int]) -> str:
    """Rising frame numbers as Open Job Description writes ranges: "1001-1010,1021-1041:2"."""
    parts, at = [], 0
    while at < len(numbers):
        end, step = at, numbers[at + 1] - numbers[at] if at + 1 < len(numbers) else 1
        while end + 1 < len(numbers) and numbers[end + 1] - numbers[end] == step:
            end += 1
        if end - at < 2 and step != 1:
            end = at
        first, last = numbers[at], numbers[end]
        parts.append(str(first) if at == end else f"{first}-{last}" + (f":{step}" if step != 1 else ""))
        at = end + 1
    return ",".join(parts)


def write_bundle(words: ApplyWords, name: str, folder: Path, needs: FarmNeeds, config: ColourConfig) -> Path:
    """Write a job for a farm: the template, and the values of its parameters in two forms.

    Args:
        words: the job, with absolute paths.
        name: of the job.
        folder: to write, made where absent.
        needs: see there.
        config: OCIO configuration; the plate is opened, so that its frames are known.

    Returns:
        The template.

    Raises:
        InputError: the job cannot be done.
        OutputError: the folder cannot be written.
    """
    job = words.job()
    plate = open_plate(job.plate, config, job.input_space, job.codes)
    numbers = [one.number for one in plate.sources(job.frames, job.missing) if one.path is not None]
    if not numbers:
        raise SettingError(f"{name}: the range holds no frame on disk", hint="check frames against the files")
    template, values = make_template(words, name, plate, numbers, needs)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise output_error(folder, error) from error
    listed = {"parameterValues": [{"name": key, "value": value} for key, value in values.items()]}
    for file, document in ((TEMPLATE_FILE, template), (PARAMETERS_FILE, values), (VALUES_FILE, listed)):
        with atomic_write(folder / file) as temporary:
            temporary.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    return folder / TEMPLATE_FILE


def make_template(
    words: ApplyWords, name: str, plate: Plate, numbers: Sequence[int], needs: FarmNeeds
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """The template of a job and the values of its parameters.

    Args:
        words: the job, with absolute paths.
        name: of the job.
        plate: open.
        numbers: frames to render.
        needs: see there.
    """
    given = _Parameters()
    told = _mapped(words, plate, given)
    given.add("Frames", "STRING", farm_range(numbers), "Frames to render")
    given.add("ChunkSize", "INT", needs.chunk, "Frames of a task", minValue=1)
    given.add("ChunkSeconds", "INT", needs.chunk_seconds, "How long a task should take; 0 for ChunkSize", minValue=0)
    given.add("Device", "STRING", "cuda" if needs.gpus else "auto", "auto, cpu or cuda")
    given.add("Threads", "INT", 0, "Frames worked on at once; 0 chooses", minValue=0)
    given.add("ServerIdle", "INT", 900, "Seconds without work after which a warm server ends", minValue=10)
    given.add("Faceplate", "STRING", needs.program, "Program to run")
    template = {
        "specificationVersion": SPECIFICATION,
        "extensions": ["TASK_CHUNKING"],
        "name": _NO_NAME.sub("_", name)[:128] or "faceplate",
        "description": "Written by faceplate farm export.",
        "parameterDefinitions": given.definitions,
        "steps": _steps(told, numbers, needs, movie=is_movie(words.output)),
    }
    return template, given.values


def _mapped(words: ApplyWords, plate: Plate, given: _Parameters) -> ApplyWords:
    """The job in terms of the parameters: each path is one that a farm can map."""
    people = []
    for index, one in enumerate(words.job().assignments, start=1):
        file = given.file(f"Identity{index}", str(one.identity), "Identity file")
        who = one.who
        if one.like is not None:
            who = given.file(f"InPlate{index}", str(one.like), "Identity file of who is in the plate")
        people.append(f"{file}@{who}")
    faces = None if words.faces is None else given.file("Faces", words.faces, "Sidecar with the faces")
    settings = None if words.settings is None else given.file("Settings", words.settings, "Settings file")
    holdout = words.job().holdout
    matte = None
    if holdout is not None:
        matte = given.folder_and_name("HoldOut", holdout.pattern, "IN", "hold-out")
        matte += f":{holdout.layer}" if holdout.layer else ""
    pattern = plate.sequence.pattern if os.path.isdir(words.plate) else words.plate
    return dataclasses.replace(
        words,
        plate=given.folder_and_name("Plate", pattern, "IN", "plate"),
        output=given.folder_and_name("Output", words.output, "OUT", "result"),
        identity=tuple(people),
        faces=faces,
        settings=settings,
        holdout=matte,
        frames=None,
    )


def _steps(told: ApplyWords, numbers: Sequence[int], needs: FarmNeeds, *, movie: bool) -> list[dict[str, Any]]:
    chunk = dataclasses.replace(told, no_movie=movie)
    here = ["--device", "{{Param.Device}}", "--threads", "{{Param.Threads}}"]
    first = _step("First", ["apply", *chunk.arguments(), "--frames", str(numbers[0]), *here], needs)
    frames = _step(
        "Frames", ["apply", *chunk.arguments(), "--frames", "{{Task.Param.Frame}}", "--server", _SERVER], needs, "First"
    )
    frames["stepEnvironments"] = [_warm_server()]
    frames["parameterSpace"] = {
        "taskParameterDefinitions": [
            {
                "name": "Frame",
                "type": "CHUNK[INT]",
                "range": "{{Param.Frames}}",
                "chunks": {
                    "defaultTaskCount": "{{Param.ChunkSize}}",
                    "targetRuntimeSeconds": "{{Param.ChunkSeconds}}",
                    "rangeConstraint": "NONCONTIGUOUS",
                },
            }
        ]
    }
    steps = [first, frames]
    if movie:
        whole = ["apply", *told.arguments(), "--frames", "{{Param.Frames}}", *here]
        steps.append(_step("Movie", whole, needs, "Frames"))
    checked = ["check", told.output] + ([] if movie else ["--frames", "{{Param.Frames}}"])
    return [*steps, _step("Check", checked, needs, "Movie" if movie else "Frames", told_by="")]


def _step(
    name: str, arguments: list[str], needs: FarmNeeds, after: str = "", told_by: str = "openjd"
) -> dict[str, Any]:
    more = ["--progress", told_by] if told_by else []
    step: dict[str, Any] = {"name": name}
    if after:
        step["dependencies"] = [{"dependsOn": after}]
    step["hostRequirements"] = {"amounts": _amounts(needs)}
    step["script"] = {"actions": {"onRun": _action([*arguments, *more])}}
    return step


def _action(arguments: list[str]) -> dict[str, Any]:
    return {
        "command": "{{Param.Faceplate}}",
        "args": arguments,
        "cancelation": {"mode": "NOTIFY_THEN_TERMINATE", "notifyPeriodInSeconds": _NOTIFY_S},
    }


def _amounts(needs: FarmNeeds) -> list[dict[str, Any]]:
    wanted = (
        ("vcpu", needs.cores),
        ("memory", needs.memory_mib),
        ("gpu", needs.gpus),
        ("gpu.memory", needs.gpu_memory_mib),
    )
    return [{"name": f"amount.worker.{name}", "min": least} for name, least in wanted if least]


def _warm_server() -> dict[str, Any]:
    begin = ["farm-server", "start", "--folder", _SERVER, "--idle", "{{Param.ServerIdle}}"]
    begin += ["--device", "{{Param.Device}}", "--threads", "{{Param.Threads}}"]
    return {
        "name": "WarmServer",
        "description": "A server of this session alone: nets and identities are loaded once.",
        "script": {
            "actions": {
                "onEnter": {"command": "{{Param.Faceplate}}", "args": begin, "timeout": 300},
                "onExit": {
                    "command": "{{Param.Faceplate}}",
                    "args": ["farm-server", "stop", "--folder", _SERVER],
                    "timeout": 300,
                },
            }
        },
    }
