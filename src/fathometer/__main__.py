"""`python -m fathometer`: the command."""

from fathometer.cli import main

main()
