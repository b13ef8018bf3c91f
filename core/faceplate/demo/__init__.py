"""The demonstration plate and its lawful faces."""
