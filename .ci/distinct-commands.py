#!/usr/bin/env python3
"""distinct-commands.py BUILD OUT: of the commands by which BUILD compiles what
is in the source tree, those that differ in file or in macros that are defined
or not, in OUT/compile_commands.json; and the files, one a line. Several programs
are made of the same files; to look at one of them once is enough.
"""
import json
import os
import shlex
import sys


def key(entry):
    macros = [a for a in shlex.split(entry["command"])
              if a.startswith("-D") and "=" not in a]
    return entry["file"], tuple(sorted(macros))


def main(build, out):
    with open(os.path.join(build, "compile_commands.json"),
              encoding="utf-8") as f:
        entries = json.load(f)
    distinct = {key(e): e for e in entries if e["file"].startswith("../")}
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "compile_commands.json"), "w",
              encoding="utf-8") as f:
        json.dump(list(distinct.values()), f, indent=1)
    for path in sorted({e["file"] for e in distinct.values()}):
        print(path)


main(*sys.argv[1:])
