"""Find, follow and smooth faces; identities."""
