"""What goes back to a client: pictures of slots, files of its tree."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from faceplate.media.file_hash import file_hash
from faceplate_client import wire
from faceplate_client.slot_header import pack_header

from ..job_files import made
from . import link
from .job import TeamJob
from .spool import Tree
from .streams import Outbox, file_source, frame_source


class Results:
    """Sends results of jobs.

    Args:
        tree: of the connection.
        outbox: to the client.
    """

    def __init__(self, tree: Tree, outbox: Outbox) -> None:
        self._tree = tree
        self._contents = tree.contents
        self._outbox = outbox

    def send_frames(self, job: TeamJob, message: wire.FrameResult) -> None:
        """Results in slots: number 0 is the picture, the others are the layers in the order of the submission."""
        outputs = [message.output, *(layer.output for layer in message.layers)]
        for place, output in enumerate(outputs):
            room = next((one for one in (*job.frames, *job.rooms) if one.reference == output), None)
            if room is None or room.reference is None:
                continue
            header, memory = room.ring.result(room.reference)
            if header is None:
                continue
            stride = len(header.channels) * header.dtype.size
            done = room.release
            (job.frames if room in job.frames else job.rooms).remove(room)
            source = frame_source(job.id, place, memory, stride, link.header_text(*pack_header(header)), done)
            self._outbox.put(job.id, source, urgent=job.urgent)

    def send_file(self, job: TeamJob, path: Path, *, frame: bool = False) -> None:
        """A file of the client's tree, if it changed since it was sent; others lie where the client sees them.

        A frame is kept by its hash too: a client that goes on with a broken job need not send it back.
        """
        if not path.is_relative_to(self._tree.root) or path.is_symlink() or not path.is_file():
            return
        state = path.stat()
        stamp = (state.st_size, state.st_mtime_ns)
        if job.told.get(path) == stamp:
            return
        job.told[path] = stamp
        kept = self._contents.new_file()
        if frame:
            os.link(path, kept)  # frames are replaced, never written into
        else:
            shutil.copyfile(path, kept)
        content, size = file_hash(kept), kept.stat().st_size
        name = self._tree.shorten(os.fspath(path))
        source = file_source(job.id, "file", kept, size, content=content, name=name)
        source.done = partial(self._contents.adopt, kept, content) if frame else partial(kept.unlink, missing_ok=True)
        self._outbox.put(job.id, source, urgent=job.urgent)

    def send_folder(self, job: TeamJob, message: Any, here: Callable[[str], str]) -> None:
        """What a job leaves beside its frames."""
        for path in made(job.message, here, message):
            self.send_file(job, path)
