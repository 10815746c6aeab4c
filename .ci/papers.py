#!/usr/bin/env -S python3 -B
"""papers.py [ROOT]: checks whether docs/where.md and docs/moved.md are true.

  where.md  has a table `question | file | words' of 20 rows or more. Each file
            exists, and its head comment contains these words: phrases separated
            by commas, in any case.
  moved.md  has tables `old | new' of paths, functions and types, each in
            backquotes; a * stands for any letters. Each new path exists, each
            new name is in src, cli, lab or tests, and no old name is.

Prints what is wrong, and exits with 1 if anything is."""
import fnmatch
import os
import re
import sys

import c_text

FOLDERS = ("src", "cli", "lab", "tests")
TEXTS = (".c", ".h", ".py", ".sh", ".lua", ".build", ".in")
ROWS = 20  # least number in where.md


def rows_of(text, columns):
    """Yields the rows of the tables with that many columns, without their headings."""
    head = True
    for line in text.splitlines():
        if not line.startswith("|"):
            head = True
            continue
        cells = [cell.strip() for cell in
                 re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if re.fullmatch(r"[\s|:-]+", line):
            head = False
        elif not head and len(cells) == columns:
            yield cells


def paths_in(cell):
    """Returns the targets of the links in a cell, which are relative to docs. A cell without links:
    returns the texts in backquotes, or, if there are none, the words."""
    links = re.findall(r"\]\(([^)#]+)", cell)
    if links:
        return [os.path.normpath(os.path.join("docs", link)) for link in links]
    return re.findall(r"`([^`]+)`", cell) or cell.split()


def head_of(path):
    text = c_text.read(path)
    if path.endswith((".c", ".h")):
        return c_text.head_comment(text)
    found = re.match(r"(?:#!.*\n)?((?:(?:#|--|\"\"\").*\n|\s*\n)*)", text)
    return " ".join(re.sub(r"(?m)^(#|--)", "", found[1]).split())


def check_where(root, text):
    rows = list(rows_of(text, 3))
    if len(rows) < ROWS:
        yield "%d rows, fewer than %d" % (len(rows), ROWS)
    for question, files, words in rows:
        for file in paths_in(files):
            path = os.path.join(root, file)
            if not os.path.isfile(path):
                yield "%s: %s is not there" % (question, file)
                continue
            head = head_of(path).lower()
            for phrase in words.replace("`", "").split(","):
                phrase = " ".join(phrase.split())
                if phrase.lower() not in head:
                    yield "%s: the head comment of %s does not have: %s" % (
                        question, file, phrase)


def is_path(item):
    return bool(re.search(r"/|\.(c|h|md|py|lua|sh|proto)$", item))


def items_of(cell):
    """Yields the quoted items: (whether it is a path, its text without struct and ())."""
    for item in re.findall(r"`([^`]+)`", cell):
        item = re.sub(r"^(struct|enum|union) |\(\)$", "", item.strip())
        if is_path(item) or re.fullmatch(r"[\w*]+", item):
            yield is_path(item), item


class Names:
    """All identifiers of C code, and the words with underscores of comments and scripts."""

    def __init__(self, root):
        self.all = set()
        for folder in FOLDERS:
            for path in c_text.files_below(root, folder, TEXTS):
                if path.startswith("tests/lint/"):
                    continue # invented old names
                text = c_text.read(os.path.join(root, path))
                self.all |= {word for word in re.findall(r"[A-Za-z_]\w*", text)
                             if "_" in word}
                if path.endswith((".c", ".h")):
                    self.all |= c_text.identifiers(text)

    def has(self, name):
        if "*" in name:
            return bool(fnmatch.filter(self.all, name))
        return name in self.all


def check_moved(root, text):
    names = Names(root)
    rows = list(rows_of(text, 2))
    if not rows:
        yield "there is no row"
    for old, new in rows:
        for path, item in items_of(new):
            if path and not any(os.path.exists(os.path.join(root, top, item))
                                for top in ("", "src")):
                yield "%s is not there (new name of %s)" % (item, old)
            elif not path and not names.has(item):
                yield "%s is nowhere (new name of %s)" % (item, old)
        for path, item in items_of(old):
            if not path and names.has(item):
                yield "%s is an old name, and still there" % item


def main(root=None):
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.abspath(root or os.path.dirname(here))
    wrong = 0
    for name, check in (("where.md", check_where), ("moved.md", check_moved)):
        path = os.path.join(root, "docs", name)
        found = ["is not there"] if not os.path.exists(path) else \
            check(root, c_text.read(path))
        for text in found:
            print("docs/%s: %s" % (name, text))
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
