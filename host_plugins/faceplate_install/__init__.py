"""Hosts on the command line: build plug-ins, put them where hosts look for them and take them away, render timelines."""
