"""The yardstick of a control message: a pyzmq ROUTER that sends back what it gets. `python -m ... ADDRESS`."""

from __future__ import annotations

import sys

import zmq


def main(address: str) -> None:
    """Echo until killed."""
    router = zmq.Context().socket(zmq.ROUTER)
    router.bind(address)
    while True:
        router.send_multipart(router.recv_multipart())


if __name__ == "__main__":
    main(sys.argv[1])
