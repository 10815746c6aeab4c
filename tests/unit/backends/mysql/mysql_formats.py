"""mysql_formats.py COMPILE_COMMANDS: checks that the arguments of each statement
match its format.

hf__my_sql() has its own formats (src/backends/mysql/conn.h). This script converts
them to those of printf, which the compiler compares with the arguments.
"""
import json
import os
import re
import shlex
import subprocess
import sys

CALL = re.compile(r"\b(hf__my_sql|hf__my_aside)\((?!struct|const)")
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
LIKE = {"%": "%%", "x": "%p %zu", "h": "%p %zu", "u": "%lu", "s": "%s"}
HEAD = ("extern void check(const void *, const char *, ...)"
        "__attribute__((format(printf, 2, 3)));\n")


def call_at(text, begin):
    """Returns the end of the call whose parenthesis is at `begin`."""
    depth, at = 0, begin
    while True:
        literal = LITERAL.match(text, at)
        if literal:
            at = literal.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if not depth:
            return at


def printf(literal):
    """Returns the literal with its formats converted to those of printf."""
    def like(match):
        return LIKE[match.group(1)]

    return re.sub(r"%(.)", like, literal.group(0))


def without_bound(text):
    """Replaces %A to %Z, which take no argument, by %% in all literals."""
    return LITERAL.sub(lambda m: re.sub("%[A-Z]", "%%", m[0]), text)


def checked(text):
    """Returns the source with its statements converted, and the number of statements."""
    parts, last, count = [HEAD], 0, 0
    text = without_bound(text)
    for match in CALL.finditer(text):
        end = call_at(text, match.end() - 1)
        call = LITERAL.sub(printf, text[match.end() - 1:end])
        parts += [text[last:match.start()], "check", call]
        last = end
        count += 1
    return "".join(parts) + text[last:], count


def run(command, text=None):
    return subprocess.run(command, input=text, text=True, check=False,
                          capture_output=True)


def compare(entry):
    """Returns the number of statements in the file; fails if the arguments of one are wrong."""
    command = shlex.split(entry["command"])
    # The output of -P has no line markers, so the compiler cannot tell system headers from our
    # files, and with -W options it would warn about the headers.
    command = [a for i, a in enumerate(command)
               if a not in ("-c", "-o", "-MD", "-MQ", "-MF") and
               not a.startswith("-W") and
               command[i - 1] not in ("-o", "-MQ", "-MF")]
    os.chdir(entry["directory"])
    source = run(command + ["-E", "-P"])
    assert source.returncode == 0, source.stderr
    text, count = checked(source.stdout)
    result = run(command[:-1] + ["-x", "c", "-fsyntax-only", "-Wformat",
                                 "-Werror=format", "-Werror=format-extra-args",
                                 "-"], text)
    assert result.returncode == 0, entry["file"] + "\n" + result.stderr
    return count


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        entries = {e["file"]: e for e in json.load(file)
                   if "backends/mysql/" in e["file"]}
    count = sum(compare(e) for e in entries.values())
    assert len(entries) > 10 and count > 50, (len(entries), count)
    print(f"{count} statements in {len(entries)} files")


main()
