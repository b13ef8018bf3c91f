"""The warm server: keeps nets and identities loaded, and runs the jobs of hosts and of the command line."""
