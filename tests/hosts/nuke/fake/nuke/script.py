"""Scripts as text: the part of Tcl that .nk files are written in, both ways."""

from __future__ import annotations

import re
from typing import Any

from .document import APP, Document, KnobData, NodeData
from .knobs import numbers, user_knob

_PLAIN = re.compile(r"[\w./%:+#@~,*-]+")


def words_of(text: str) -> list[str]:
    """Tcl words of one line or list. An unescaped bracket in a quoted or bare word would run a command: refused."""
    words, i = [], 0
    while i < len(text):
        if text[i] in " \t\n":
            i += 1
            continue
        if text[i] == "{":
            end = _closing(text, i)
            words.append(text[i + 1 : end])
            i = end + 1
            continue
        quoted, word = text[i] == '"', ""
        i += quoted
        while i < len(text) and (text[i] != '"' if quoted else text[i] not in " \t\n"):
            if text[i] == "\\":
                i += 1
                word += {"n": "\n", "t": "\t"}.get(text[i], text[i])
            elif text[i] == "[":
                raise RuntimeError(f"a command in a value: {text[i : i + 30]!r}")
            elif text[i] == "$" and quoted:
                raise RuntimeError(f"a variable in a value: {text[i : i + 30]!r}")
            else:
                word += text[i]
            i += 1
        i += quoted
        words.append(word)
    return words


def _closing(text: str, start: int) -> int:
    depth, i = 0, start
    while i < len(text):
        if text[i] == "\\":
            i += 1
        elif text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if not depth:
                return i
        i += 1
    raise RuntimeError("a brace that is not closed")


def _commands(text: str) -> list[tuple[str, str]]:
    """(first word, rest) of each command; a node's rest is the inside of its braces."""
    found, i = [], 0
    while i < len(text):
        match = re.compile(r"[ \t\n]*([\w#]+)").match(text, i)
        if match is None:
            if text[i:].strip():
                raise RuntimeError(f"no command: {text[i : i + 40]!r}")
            break
        word, i = match[1], match.end()
        rest_end = text.find("\n", i)
        rest_end = len(text) if rest_end < 0 else rest_end
        brace = re.compile(r"[ \t]*\{").match(text, i)
        if brace and word not in ("set", "push", "version"):
            end = _closing(text, brace.end() - 1)
            found.append((word, text[brace.end() : end]))
            i = end + 1
        else:
            found.append((word, text[i:rest_end].strip()))
            i = rest_end
    return found


def _lines(body: str) -> list[str]:
    """Knob lines of a node: a line break inside braces or quotes does not end one."""
    lines, start, i, quoted = [], 0, 0, False
    while i < len(body):
        sign = body[i]
        if sign == "\\":
            i += 1
        elif sign == '"':
            quoted = not quoted
        elif sign == "{" and not quoted:
            i = _closing(body, i)
        elif sign == "\n" and not quoted:
            lines.append(body[start:i])
            start = i + 1
        i += 1
    lines.append(body[start:])
    return [line.strip() for line in lines if line.strip()]


def read(text: str, owner: int) -> list[int]:
    """Make the nodes of a text in a group; their ids. What is selected is the stack's `cut_paste_input`."""
    from .nodes import make, selected_in

    variables: dict[str, int] = {}
    chosen = selected_in(owner)
    stack: list[int] = []
    owners, stacks, made = [owner], [stack], []
    for word, rest in _commands(text):
        if word == "version":
            continue
        if word == "set":
            name, command = rest.split(" ", 1)
            if command != "[stack 0]":
                raise RuntimeError(f"set {rest}: not understood")
            top = stacks[-1][-1] if stacks[-1] else (chosen[0] if chosen else 0)
            variables[name] = top
        elif word == "push":
            stacks[-1].append(0 if rest == "0" else variables[rest.lstrip("$")])
        elif word == "end_group":
            owners.pop()
            stacks.pop()
        else:
            uid = make(word, owners[-1], _lines(rest), stacks[-1])
            made.append(uid)
            if word == "Group":
                owners.append(uid)
                stacks.append([])
    if len(owners) != 1:
        raise RuntimeError("a group that is not ended")
    return [uid for uid in made if uid in APP.document.nodes and APP.document.nodes[uid].owner == owner]


def set_from_text(node: NodeData, line: str) -> None:
    """One knob line."""
    name, _, said = line.partition(" ")
    if name == "addUserKnob":
        knob = user_knob(words_of(words_of(said)[0]))
        node.knobs[knob.name] = knob
        return
    knob_data = node.knobs.get(name)
    if knob_data is None:
        raise RuntimeError(f"{node.cls}: no such knob named {name!r}")
    value = words_of(said)
    text = value[0] if value else ""
    if knob_data.kind == "box":
        knob_data.value = [float(one) for one in text.split()]
    elif text.startswith(("{curve", "curve")):
        read_curves(knob_data, text)
    elif knob_data.kind == "switch":
        knob_data.value = text == "true"
    elif knob_data.kind in ("int", "number"):
        knob_data.value = numbers(text)
    elif knob_data.kind == "pulldown" and knob_data.facts.get("values") and text not in knob_data.facts["values"]:
        raise RuntimeError(f"{node.cls}.{name}: {text!r} is no entry")
    else:
        knob_data.value = text


def read_curves(data: KnobData, text: str) -> None:
    for view, keys in re.findall(r"curve (\S*?) ?K((?: x[^\s}]+ [^\s}]+)+)", text):
        pairs = re.findall(r"x([^\s}]+) ([^\s}]+)", keys)
        data.curves[view.replace("l:", "")] = [(float(x), float(y)) for x, y in pairs]


def written(data: KnobData) -> str:
    """The value as a script has it."""
    if data.facts.get("expression"):
        return "{{" + data.facts["expression"] + "}}"
    if data.curves:
        parts = [
            f"curve l:{view} K" + "".join(f" x{x:g} {y:g}" for x, y in keys)
            if view
            else "curve  K" + "".join(f" x{x:g} {y:g}" for x, y in keys)
            for view, keys in sorted(data.curves.items())
        ]
        return "{" + " ".join("{" + part + "}" for part in parts) + "}"
    if data.kind == "box":
        return "{" + " ".join(f"{one:g}" for one in data.value) + "}"
    if data.kind == "switch":
        return "true" if data.value else "false"
    if data.kind in ("int", "number"):
        return f"{float(data.value):g}"
    said = str(data.value if data.value is not None else "")
    return said if _PLAIN.fullmatch(said) else quoted(said)


def quoted(said: str) -> str:
    for sign in ("\\", '"', "[", "]", "$"):
        said = said.replace(sign, "\\" + sign)
    return '"' + said.replace("\n", "\\n").replace("\t", "\\t") + '"'


def _definition(data: KnobData) -> str:
    from .knobs import TYPES

    number = next(number for number, kind in TYPES.items() if kind == data.kind)
    words = [str(number), data.name if data.name else '""']
    for letter, name in (("l", "label"), ("t", "tooltip"), ("T", "code")):
        if name in data.facts:
            words += [letter, quoted(data.facts[name])]
    if "raw_values" in data.facts:
        words += ["M", "{" + data.facts["raw_values"] + "}"]
    if "range" in data.facts:
        words += ["R", *(f"{one:g}" for one in data.facts["range"])]
    return "addUserKnob {" + " ".join([*words, *data.facts["flags"]]) + "}"


def knob_lines(node: NodeData) -> list[str]:
    """Definitions and values that are not the defaults."""
    lines = []
    for data in node.knobs.values():
        if data.is_user:
            lines.append(_definition(data))
        if data.kind not in ("button", "link", "label", "tab") and (
            data.value != data.default or data.curves or data.by_view
        ):
            lines.append(f"{data.name} {written(data)}")
    return lines


def write(document: Document, owner: int = 0, indent: str = "") -> str:
    """The script as text; nodes in the order that they need each other."""
    lines: list[str] = []
    if owner == 0:
        lines += ["version 14.0 v1", "Root {", *(f" {line}" for line in knob_lines(document.nodes[0])), "}"]
    for node in _ordered(document, owner):
        for uid in reversed(node.inputs):
            lines.append(f"push $N{uid}" if uid else "push 0")
        lines += [f"{node.cls} {{", f" inputs {len(node.inputs)}", *(f" {line}" for line in knob_lines(node)), "}"]
        if node.cls == "Group":
            lines += [write(document, node.uid, indent + " "), "end_group"]
        lines.append(f"set N{node.uid} [stack 0]")
    return "\n".join(indent + line if line and not line.startswith(indent) else line for line in lines)


def _ordered(document: Document, owner: int) -> list[NodeData]:
    mine = [node for node in document.nodes.values() if node.owner == owner and node.uid]
    done: dict[int, NodeData] = {}

    def add(node: NodeData) -> None:
        for uid in node.inputs:
            if uid and uid not in done:
                add(document.nodes[uid])
        done.setdefault(node.uid, node)

    for node in mine:
        add(node)
    return list(done.values())


def facts(node: NodeData) -> dict[str, Any]:
    """Everything of a node, comparable."""
    return {
        name: (None if data.curves.get("") else data.value, data.curves, data.by_view)
        for name, data in node.knobs.items()
    }
