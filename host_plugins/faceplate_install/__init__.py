"""Build the plug-ins and put them where the hosts look for them; what is written can be taken away again."""
