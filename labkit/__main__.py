"""``python -m labkit`` is the command ``labkit``."""

from labkit.cli import main

main()
