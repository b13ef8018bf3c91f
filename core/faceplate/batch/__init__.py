"""Many jobs one after the other: a queue, its runners, the check of what came out, the summary."""
