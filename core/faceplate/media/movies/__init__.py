"""Movies: files of many frames, read and written through PyAV; colour by our own arithmetic, never swscale's."""
