#!/usr/bin/env -S python3 -B
"""words.py [ROOT]: no text may contain a word that .ci/words.list replaces.

Reads all text of the folders below (comments, strings, documents and manual pages) as one long
line per file, so that it finds a phrase across a line break. Prints each place with what to write
instead, and each line of the list that allows something that no file contains. Exits with 1 if it
has printed anything."""
import bisect
import fnmatch
import os
import re
import sys

import c_text

FOLDERS = ("include", "src", "cli", "lab", "bench", "examples", "tests", "docs",
           "cmake", "completions", ".ci", ".github")
ENDINGS = tuple((".c .h .lua .sql .proto .py .sh .js .java .go .md .1 .3 .5 .7 "
                 ".build .txt .yml .list").split())
LIST = ".ci/words.list"
# Text that begins a line of a comment or of a quotation, or joins two strings.
BETWEEN = re.compile(r'"?[ \t]*\\?\n[ \t]*(?:/?\*+|//|#+|--|>|\.\\")?[ \t]*"?')


class Words:
    def __init__(self, text):
        self.replaced, self.allowed = [], []
        for line in text.splitlines():
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            what, _, rest = line.partition(" : ")
            if what.startswith("allow "):
                _, files, pattern = what.split(None, 2)
                self.allowed.append([files, re.compile(pattern, re.I), False, line])
            else:
                pattern = r"\b(?:%s)\b" % what.replace(" ", r"\s+")
                self.replaced.append((re.compile(pattern, re.I), rest))

    def is_allowed(self, path, line, start, end):
        """Returns whether the place is part of a text that the list allows in that file."""
        found = False
        for rule in self.allowed:
            files, pattern = rule[:2]
            if fnmatch.fnmatch(path, files) and \
                    any(m.start() <= start and end <= m.end()
                        for m in pattern.finditer(line, max(0, start - 200), end + 200)):
                rule[2] = found = True
        return found


def on_one_line(text):
    """Returns the text with a blank for each line break, and the offset of each line."""
    line, begins, at, length = [], [0], 0, 0
    for found in BETWEEN.finditer(text):
        line += [text[at:found.start()], " "]
        length += found.start() - at + 1
        at = found.end()
        begins.append(length)
    return "".join(line) + text[at:], begins


def paths_of(root):
    paths = [name for name in sorted(os.listdir(root))
             if name.endswith(".md") or name in ("dev", "meson.build")]
    for folder in FOLDERS:
        paths += c_text.files_below(root, folder, ENDINGS)
    paths += [p for p in (".ci/run",) if os.path.exists(os.path.join(root, p))]
    return [p for p in paths if p != LIST]


def check(root):
    words = Words(c_text.read(os.path.join(root, LIST)))
    for path in paths_of(root):
        line, begins = on_one_line(c_text.read(os.path.join(root, path)))
        for pattern, better in words.replaced:
            for m in pattern.finditer(line):
                if not words.is_allowed(path, line, *m.span()):
                    yield "%s:%d: %s -> %s" % (
                        path, bisect.bisect(begins, m.start()),
                        " ".join(m.group(0).split()), better)
    for *_, used, text in words.allowed:
        if not used:
            yield "%s: nothing needs this line: %s" % (LIST, text)


def main(root="."):
    wrong = list(check(root))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
