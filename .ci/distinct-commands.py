#!/usr/bin/env python3
"""distinct-commands.py BUILD OUT [BASE]: of the commands by which BUILD compiles
what is in the source tree, those that differ in file or in macros that are
defined or not, in OUT/compile_commands.json; and the files, one a line. Several
programs are made of the same files; to look at one of them once is enough.

With BASE, a commit: only those of files that differ from it, or include one that
does, as BUILD, which is up to date, knows it. All of them if what they are looked
at by differs.
"""
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
    """Of each object: the files that it was made of, as BUILD names them."""
    of = {}
    for line in lines_of("ninja", "-C", build, "-t", "deps"):
        if line.startswith("    "):
            of[name].add(line.strip())
        elif ": #deps " in line:
            name = line.split(": #deps ")[0]
            of[name] = set()
    return of


def lint_of(text):
    """The part of ./dev that looks at files."""
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
