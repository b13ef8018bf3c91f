"""One frame for a host, or of a range: from a slot or a file, into a slot or a file, on record."""
