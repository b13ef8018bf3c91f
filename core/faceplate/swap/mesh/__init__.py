"""The mesh engine: photos re-projected on the plate's dense face mesh. Needs no weights of its own."""
