"""Whole timelines: what has to be rendered, who becomes whom, the jobs, and the timeline that plays the results."""
