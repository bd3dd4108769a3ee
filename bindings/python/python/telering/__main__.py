"""`python -m telering` is the command."""

from ._command import main

main()
