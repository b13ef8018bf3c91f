"""`python -m faceplate`: the command line."""

import sys

from faceplate.cli.main import main

sys.exit(main())
