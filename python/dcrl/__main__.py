"""The program `dcrl`, as `python -m dcrl` and as the command that pip installs."""

import os
import sys

from ._lib import program


def main() -> None:
    os.execv(program(), ["dcrl", *sys.argv[1:]])


if __name__ == "__main__":
    main()
