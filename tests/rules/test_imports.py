"""Who may import whom (design, section 2), read from the source so that it holds even for lazy imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parents[2]
HOSTS = {"bpy", "nuke", "DaVinciResolveScript", "fusionscript"}
OURS = {
    "faceplate": "core",
    "faceplate_server": "server",
    "faceplate_client": "host_plugins",
    "faceplate_blender": "host_plugins",
    "faceplate_nuke": "host_plugins",
    "faceplate_resolve": "host_plugins",
    "faceplate_install": "host_plugins",
}
HEAVY = {"torch", "onnxruntime", "cv2", "OpenEXR", "OpenImageIO", "PyOpenColorIO", "av"}
FORBIDDEN = {
    "faceplate": (set(OURS) - {"faceplate"}) | HOSTS | {"zmq"},
    "faceplate_server": HOSTS
    | {name for name in OURS if name.startswith(("faceplate_b", "faceplate_n", "faceplate_r", "faceplate_i"))},
    "faceplate_client": (set(OURS) - {"faceplate_client"}) | HOSTS | HEAVY | {"zmq"},
    **{
        host: (set(OURS) - {host, "faceplate_client"}) | HEAVY | {"zmq"}
        for host in ("faceplate_blender", "faceplate_nuke", "faceplate_resolve")
    },
    "faceplate_install": {name for name in OURS if name not in ("faceplate", "faceplate_client", "faceplate_install")}
    | HOSTS
    | HEAVY
    | {"zmq"},
}
BLENDER_DATA = {"host.py", "baking.py", "compositor.py", "batch.py", "render_timeline.py", "clip_ui.py"}
"""Files of faceplate_blender that may use `bpy.data` and `bpy.ops`: few places change the artist's document."""
BLENDER_FREE = {"shim.py", "colours.py", "strips.py", "placing.py", "nodes.py", "clip_tracks.py", "render_state.py"}
"""Files of faceplate_blender that do without bpy: they work on what they are given."""
NUKE_FILES = {"application.py", "host.py"}
RESOLVE_FREE = {"__init__.py", "__main__.py", "calls.py", "colours.py", "commands.py", "settings.py"}
"""Files of faceplate_resolve that call no method of Resolve's objects."""
"""Files of faceplate_nuke that may import nuke; the others work on what those give them."""
LAYERS = (
    "errors",
    "frame face job",
    "models media colour",
    "nets",
    "nets",
    "faces swap provenance",
    "report plate composite identity",
    "pipeline deliver demo",
    "jobs",
    "batch",
    "bench farm",
    "cli",
)
"""Inside core, a module imports its own layer and those before it."""


def sources(package: str) -> list[Path]:
    return sorted((ROOT / OURS[package] / package).rglob("*.py"))


def imports(path: Path, base: Path) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted name) of each import in a file; relative ones resolved against `base`'s parent."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                yield node.lineno, node.module or ""
                continue
            folder = path.parent
            for _ in range(node.level - 1):
                folder = folder.parent
            prefix = ".".join(folder.relative_to(base.parent).parts)
            names = [node.module] if node.module else [alias.name for alias in node.names]
            for name in names:
                yield node.lineno, f"{prefix}.{name}"


PRESENT = [package for package, folder in OURS.items() if (ROOT / folder / package).is_dir()]


def test_packages_are_there() -> None:
    assert {"faceplate", "faceplate_client"} <= set(PRESENT)
    assert len(sources("faceplate")) > 20


@pytest.mark.parametrize("package", PRESENT)
def test_no_forbidden_import(package: str) -> None:
    base = ROOT / OURS[package] / package
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources(package)
        for line, name in imports(path, base)
        if name.split(".")[0] in FORBIDDEN[package]
    ]
    assert found == []


def layer_of(dotted: str) -> int | None:
    parts = dotted.split(".")
    if len(parts) < 2 or parts[0] != "faceplate":
        return None
    return next((level for level, names in enumerate(LAYERS) if parts[1] in names.split()), None)


def test_core_imports_point_downwards() -> None:
    base = ROOT / "core" / "faceplate"
    wrong = []
    for path in sources("faceplate"):
        own = layer_of(".".join(("faceplate", *path.relative_to(base).with_suffix("").parts)))
        for line, name in imports(path, base):
            other = layer_of(name)
            if own is not None and other is not None and other > own:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}, a layer above")
    assert wrong == []


def test_the_check_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "faceplate" / "frame.py"
    bad.parent.mkdir()
    bad.write_text("def f():\n    import zmq\n    from .pipeline import x\n")
    names = [name for _, name in imports(bad, tmp_path / "faceplate")]
    assert names == ["zmq", "faceplate.pipeline"]
    assert layer_of("faceplate.pipeline") > layer_of("faceplate.frame")  # type: ignore[operator]


def _is_bpy(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "bpy"


def test_blenders_data_is_touched_in_few_files() -> None:
    wrong = []
    for path in sources("faceplate_blender"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if _is_bpy(node) and node.attr in ("data", "ops") and path.name not in BLENDER_DATA:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} uses bpy.{node.attr}")
            if isinstance(node, ast.Import) and path.name in BLENDER_FREE and node.names[0].name == "bpy":
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} imports bpy")
    assert wrong == []


def test_nuke_is_touched_in_one_file() -> None:
    base = ROOT / "host_plugins" / "faceplate_nuke"
    users = {path.name for path in sources("faceplate_nuke") for _, name in imports(path, base) if name == "nuke"}
    assert users == NUKE_FILES


def test_resolves_objects_are_touched_in_few_files() -> None:
    folder = ROOT / "host_plugins" / "faceplate_resolve"
    api = ast.parse((folder / "api.py").read_text("utf-8"))
    calls = {node.name for node in ast.walk(api) if isinstance(node, ast.FunctionDef) and node.name[0].isupper()}
    wrong = []
    for path in sources("faceplate_resolve"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in calls and path.name in RESOLVE_FREE:
                wrong.append(f"{path.name}:{node.lineno} calls {node.attr}")
    assert len(calls) > 50
    assert wrong == []
