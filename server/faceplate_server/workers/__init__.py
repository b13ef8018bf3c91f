"""The threads of jobs, and the worker processes that they have frames and analyses done by."""
