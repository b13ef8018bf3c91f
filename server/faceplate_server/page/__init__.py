"""The status page: what the server does, for people at `http://127.0.0.1:PORT/TOKEN/` and for Prometheus.

counts.py      what happened: frames, jobs, errors, times; written by the server's loop
board.py       how things stand now: clients, jobs, nets, memory; made by the server's loop, read by others
system.py      this machine and its GPUs, asked by a thread of its own
nvml.py        what NVIDIA's library tells of a GPU
document.py    all of these as the page's JSON
prometheus.py  all of these as Prometheus text
listener.py    HTTP on the loopback
service.py     start and end
"""
