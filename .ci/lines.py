#!/usr/bin/env -S python3 -B
"""lines.py [ROOT]: prints how many lines of code, comments and blanks each room
has, and the code of its unit tests and fault tests. A line with both code and a
comment counts as code. The tests of a room of src are in tests/unit/ROOM, and
those of a backend also in tests/faults/BACKEND."""
import os
import sys

import c_text

# Each folder directly below a folder of this table has its own row. If a folder
# of this table contains files itself, it has a row for these files.
EACH_FOLDER = {"src": 2, "src/backends": 3, "lab": 2, "cli": 2, "tests": 2,
               "tests/unit": 3, "tests/unit/backends": 4, "tests/faults": 3}
TOP = ("include", "src", "cli", "lab", "bench", "examples", "tests")
ENDINGS = (".c", ".h", ".lua", ".py", ".sh", ".go", ".java", ".js", ".css")
COMMENT = {".lua": "--", ".py": "#", ".sh": "#"}


def room_of(path):
    """Returns the deepest folder of the path that has a row."""
    parts = os.path.dirname(path).split("/")
    depth = 1
    while "/".join(parts[:depth]) in EACH_FOLDER and depth < len(parts):
        depth += 1
    return "/".join(parts[:depth])


def count(path, text):
    """Returns the number of lines: (code, comments, blank)."""
    ending = os.path.splitext(path)[1]
    lines = text.splitlines()
    blank = sum(not line.strip() for line in lines)
    if ending in COMMENT:
        comments = sum(line.strip().startswith(COMMENT[ending])
                       for line in lines)
    else:
        code = c_text.without_comments(text).splitlines()
        comments = sum(bool(was.strip()) and not now.strip()
                       for was, now in zip(lines, code))
    return len(lines) - comments - blank, comments, blank


def tests_of(room, rows):
    """Returns the lines of code of the tests that mirror a room of src, or "-" if no tests do."""
    if not room.startswith("src/"):
        return ""
    inside = room[len("src/"):]
    mirrors = ["tests/unit/" + inside,
               "tests/faults/" + os.path.basename(inside)]
    if inside == "policy":
        mirrors.append("tests/sim")
    found = [rows[m][1] for m in mirrors if m in rows]
    return sum(found) if found else "-"


def main(root="."):
    rows = {}
    for top in TOP:
        for path in c_text.files_below(root, top, ENDINGS):
            room = room_of(path)
            numbers = count(path, c_text.read(os.path.join(root, path)))
            row = rows.setdefault(room, [0, 0, 0, 0])
            for i, n in enumerate((1, *numbers)):
                row[i] += n
    line = "%-28s %6s %7s %9s %7s %7s"
    print(line % ("room", "files", "code", "comments", "blank", "tests"))
    for room, row in rows.items():
        print(line % (room, *row, tests_of(room, rows)))
    print(line % ("total", *(sum(column) for column in zip(*rows.values())), ""))


if __name__ == "__main__":
    if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
        sys.exit(__doc__)
    main(*sys.argv[1:])
