"""Servers that work for each other over CURVE: a team server's door, and the local server that hands jobs on.

keys, keys_command      who is who, and who may come in
listen, session, job, session_results, spool, rooms     the team server's side: one `session` a client
upstream, upstream_line, upstream_link, forward, parcel, arriving     the local server's side
link, rewrite, streams, packed, window                  what both speak
ends                                                    which of the two a server is, from its settings
"""
