"""Hosts on the command line: builds plug-ins, puts them where hosts look, takes them away, renders timelines."""
