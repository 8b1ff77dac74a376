"""The ``rackloom`` command, as ``pip install`` puts it on the path; also ``python -m rackloom``."""

import sys

from rackloom import _native, extras


def main() -> int:
    """Carries out the command line; the exit code."""
    return _native.command(["rackloom", *sys.argv[1:]], extras)


if __name__ == "__main__":
    sys.exit(main())
