#!/usr/bin/env python3
"""distinct-commands.py BUILD OUT [BASE]: writes OUT/compile_commands.json with
the commands by which BUILD compiles the source tree, one for each file and set of
defined macros; prints the files, one per line. Several programs compile the same
files, and it is enough to check each file once.

With BASE, a commit, only files count that differ from BASE, or include such a file
according to BUILD, which must be up to date. If the settings of the checks differ
from BASE, all files count."""
import json
import os
import shlex
import subprocess
import sys

FOR_ALL = {".clang-tidy", "tests/.clang-tidy", ".ci/distinct-commands.py",
           "meson.build", "meson_options.txt"}


def key(entry):
    macros = [a for a in shlex.split(entry["command"])
              if a.startswith("-D") and "=" not in a]
    return entry["file"], tuple(sorted(macros))


def lines_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          text=True).stdout.splitlines()


def dependencies(build):
    """Returns, for each object, the files that it was made of, as BUILD names them."""
    of = {}
    for line in lines_of("ninja", "-C", build, "-t", "deps"):
        if line.startswith("    "):
            of[name].add(line.strip())
        elif ": #deps " in line:
            name = line.split(": #deps ")[0]
            of[name] = set()
    return of


def lint_of(text):
    """Returns the part of ./dev that runs the checks."""
    return text.partition("\nlint() {\n")[2].partition("\n}\n")[0]


def looks_otherwise(base):
    before = "\n".join(lines_of("git", "show", base + ":dev"))
    with open("dev", encoding="utf-8") as f:
        return lint_of(f.read()) != lint_of(before)


def changed(entries, build, base):
    paths = set(lines_of("git", "diff", "--name-only", base)
                + lines_of("git", "ls-files", "--others", "--exclude-standard"))
    if paths & FOR_ALL or "dev" in paths and looks_otherwise(base):
        return entries
    paths = {"../" + path for path in paths}
    of = dependencies(build)
    return [e for e in entries
            if e["output"] not in of or of[e["output"]] & paths]


def main(build, out, base=None):
    with open(os.path.join(build, "compile_commands.json"),
              encoding="utf-8") as f:
        entries = json.load(f)
    if base:
        entries = changed(entries, build, base)
    distinct = {key(e): e for e in entries if e["file"].startswith("../")}
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "compile_commands.json"), "w",
              encoding="utf-8") as f:
        json.dump(list(distinct.values()), f, indent=1)
    for path in sorted({e["file"] for e in distinct.values()}):
        print(path)


main(*sys.argv[1:])
