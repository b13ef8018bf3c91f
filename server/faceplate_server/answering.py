"""Questions that take a while and are in no queue: who is in a folder's identity files."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from faceplate.errors import FaceplateError

from .errors import Refused, to_message
from .jobs import Job

log = logging.getLogger(__name__)


def answer_in_thread(job: Job, make: Callable[[], Any], tell: Callable[[Job, Any], None]) -> None:
    """Answer a question in a thread of its own.

    Args:
        job: whose question it is.
        make: makes the answer.
        tell: takes it.
    """

    def run() -> None:
        try:
            answer = make()
        except (Refused, FaceplateError) as error:
            answer = to_message(job.id, error)
        except Exception as error:
            log.exception("question %s of %s met a fault", job.id, job.client)
            answer = to_message(job.id, error)
        tell(job, answer)

    threading.Thread(target=run, name="answer", daemon=True).start()
