"""`python -m soak [NAME …]`: run the programs, put what they find on record, write the page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from soak.catalogue import PROGRAMS
from soak.page import PAGE, page
from soak.record import FOLDER, carry_out, read_records


def main() -> int:
    """Run what was named, or all; 1 if anything failed."""
    known = [program.name for program in PROGRAMS]
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which programs: {', '.join(known)}; all if left out")
    parser.add_argument("--effort", choices=("smoke", "full"), default="full", help="smoke takes seconds")
    parser.add_argument("--out", type=Path, help="another folder for the records; the page stays as it is")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(known):
        parser.error(f"expected some of {', '.join(known)}; got {', '.join(sorted(unknown))}")
    failed = 0
    for program in [] if asked.page else PROGRAMS:
        if asked.names and program.name not in asked.names:
            continue
        if program.gpu and not torch.cuda.is_available():
            print(f"{program.name}: needs a CUDA device, so it is left out", file=sys.stderr)
            continue
        print(f"{program.name}: {program.asks}", file=sys.stderr)
        record = carry_out(program, asked.effort)
        path = record.write(asked.out or FOLDER)
        print(
            f"{program.name}: {len(record.failures)} failures, {record.seconds:.0f} s, {path}",
            file=sys.stderr,
        )
        for failure in record.failures:
            print(f"  {failure}", file=sys.stderr)
        failed += bool(record.failures)
    if asked.out is None:
        PAGE.write_text(page(PROGRAMS, read_records()), "utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
