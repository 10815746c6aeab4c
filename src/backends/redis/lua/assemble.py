#!/usr/bin/env python3
"""assemble.py HEADER OUT DEPFILE SCRIPT...: puts the Lua scripts together.

Writes each assembled SCRIPT to OUT/<its name>, exactly as the server gets it;
all scripts, with their digests, to OUT/scripts.c; and the names of the files
that were read to DEPFILE. README.md in this folder describes the lines that
begin with --@.
"""
import hashlib
import pathlib
import re
import sys

KEYWORDS = set("""and break do else elseif end false for function if in local
    nil not or repeat return then true until while""".split())
GLOBALS = set("""ARGV KEYS ipairs math redis string table tonumber type
    unpack""".split())
HEADS = ("keys", "args", "takes", "needs", "defines")


def fail(where, text):
    sys.exit(f"{where}: {text}")


class Source:
    """A script or a piece: what its head says, and its lines, each a tuple
    (place in the file, whether it is indented, content). The content is a
    string, or (piece, {argument: text}) for an include."""

    def __init__(self, path):
        self.path = path
        self.head = {word: [] for word in HEADS}
        self.lines = []
        self.expressions = {}
        for where, indented, word, text in directives(path):
            if word is None:
                self.lines.append((where, indented, text))
            elif word in HEADS:
                if self.head[word]:
                    fail(where, f"there is a second --@{word}")
                self.head[word] = text.split()
            elif word == "define" and path.name == "expressions.lua":
                name, _, text = text.partition(" ")
                self.expressions[name] = text
            elif word == "include":
                piece, _, text = text.partition(" ")
                given = arguments(where, text)
                self.lines.append((where, indented, (piece, given)))
            else:
                fail(where, f"--@{word} is unknown")


def arguments(where, text):
    given = {}
    for pair in filter(str.strip, text.split(";")):
        name, equals, value = (p.strip() for p in pair.partition("="))
        if not equals or name in given:
            fail(where, f"{pair.strip()}: name=text, each name once")
        given[name] = value
    return given


def directives(path):
    """Returns [where, indented, word, text] for each directive and each line of
    Lua; the word of a line of Lua is None. Omits comments and empty lines."""
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        where, indented = f"{path}:{number}", line[:1].isspace()
        bare = line.strip()
        if bare.startswith("--[["):
            fail(where, "comments are lines that begin with --")
        if bare.startswith("--@ "):  # continues the previous one
            if not found or found[-1][2] is None:
                fail(where, "there is no --@ line before it")
            found[-1][3] += "\n" + bare[3:]
        elif bare.startswith("--@"):
            word, _, text = bare[3:].partition(" ")
            found.append([where, indented, word, text])
        elif bare and not bare.startswith("--"):
            found.append([where, indented, None, line])
    return found


class Assembly:
    def __init__(self, header, pieces):
        self.pieces = pieces
        self.known = {}
        self.common = dict(re.findall(r"^#define (RD_\w+) (\d+)(?= *(?:/\*|$))",
                                      header.read_text("utf-8"), re.M))
        self.common.update(self.piece("expressions.lua", "").expressions)
        self.head = {}

    def piece(self, name, where):
        if name not in self.known:
            path = self.pieces / name
            if not path.is_file():
                fail(where, f"there is no piece {name}")
            self.known[name] = Source(path)
            check_head(self, self.known[name])
        return self.known[name]

    def put_in(self, where, text, given):
        """Replaces $name, KEYS.name and ARGV.name with their values."""
        def one(match):
            name, array, field = match.groups()
            if array:
                if field not in self.head[array]:
                    fail(where, f"the script has no {array}.{field}")
                return f"{array}[{self.head[array].index(field) + 1}]"
            if name in given:
                return given[name]
            if name not in self.common:
                fail(where, f"${name} is unknown")
            return self.put_in(where, self.common[name], {})
        return re.sub(r"\$(\w+)|\b(KEYS|ARGV)\.(\w+)", one, text)

    def expand(self, source, given):
        text = ""
        for where, _, line in source.lines:
            if isinstance(line, str):
                text += self.put_in(where, line, given) + "\n"
                continue
            name, args = line
            piece = self.piece(self.put_in(where, name, given), where)
            if sorted(args) != sorted(piece.head["takes"]):
                fail(where, f"{name} takes {' '.join(piece.head['takes'])}")
            args = {a: self.put_in(where, t.strip('"'), given)
                    for a, t in args.items()}
            text += self.expand(piece, args)
        return text

    def script(self, path):
        source = Source(path)
        check_head(self, source)
        self.head = {"KEYS": source.head["keys"], "ARGV": source.head["args"]}
        return self.expand(source, {}).rstrip("\n")


def used_names(assembly, text):
    """Returns the variables that a text uses. A $name that a piece takes does
    not count as a variable."""
    text = re.sub(r"\$(\w+)", lambda m: assembly.common.get(m[1], ""), text)
    text = re.sub(r"'[^']*'", "''", text)
    words = re.findall(r"(?<![\w$])(?<!(?<!\.)\.)[A-Za-z_]\w*", text)
    return set(words) - KEYWORDS - GLOBALS


def new_names(text):
    lists = re.findall(r"\blocal (?!function )([\w,]+)|\bfor ([\w,]+)"
                       r"|\bfunction ?(\w*)\(([\w,]*)", text)
    return set(",".join(",".join(m) for m in lists).split(",")) - KEYWORDS


def check_head(assembly, source):
    """Fails in two cases: the head of a piece does not list exactly the variables that the
    piece needs and those that it defines; or a script uses a variable that it does not
    define. Only a line without an indent defines variables for the outermost block."""
    needs, defines, inside = set(), set(), set()
    for where, indented, line in source.lines:
        if isinstance(line, str):
            new, used = new_names(line), used_names(assembly, line)
            inside |= new
            outer = re.match(r"local (?:function )?([\w,]+)", line)
            defines |= set(outer[1].split(",") if outer else [])
        else:
            name, args = line
            used, new = set(), set()
            for text in args.values():
                if text.endswith(".lua"):
                    used |= set(assembly.piece(text, where).head["needs"])
                elif not text.startswith('"'):
                    used |= used_names(assembly, text)
            if not name.startswith("$"):
                piece = assembly.piece(name, where)
                used -= piece.inside  # the given texts may use these
                used |= set(piece.head["needs"])
                new = set(piece.head["defines"])
            if not indented:
                defines |= new
        needs |= used - inside
        inside |= new
    source.inside = inside
    is_piece = source.path.parent == assembly.pieces
    for word, found in (("needs", needs), ("defines", defines)):
        if is_piece and set(source.head[word]) != found:
            names = " ".join(sorted(found)) or "nothing"
            fail(source.path, f"--@{word} should say: {names}")
    if needs and not is_piece:
        fail(source.path, f"{' '.join(sorted(needs))} is not defined")


def c_string(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", '\\n"\n     "') + '"'


def main(header, out, depfile, *scripts):
    paths = [pathlib.Path(s) for s in scripts]
    assembly = Assembly(pathlib.Path(header), paths[0].parent / "pieces")
    out = pathlib.Path(out)
    c = '#include "backends/redis/scripts.h"\n\n' \
        "const struct rd_text hf__rd_script[RD_SCRIPTS] = {\n"
    for path in paths:
        text = assembly.script(path)
        (out / path.name).write_text(text, "utf-8")
        bytes = text.encode("utf-8")
        digest = hashlib.sha1(bytes, usedforsecurity=False).hexdigest()
        keys = ", ".join("RD_KEY_" + key.upper() for key in assembly.head["KEYS"])
        c += f'    [RD_{path.stem.upper()}] = {{"{digest}",\n' \
             f"     {len(assembly.head['KEYS'])}, {{{keys or 0}}}, {len(bytes)},\n" \
             f"     {c_string(text)}}},\n"
    (out / "scripts.c").write_text(c + "};\n", "utf-8")
    read = [header, *scripts, *(p.path for p in assembly.known.values())]
    names = " ".join(str(r).replace(" ", "\\ ") for r in read)
    pathlib.Path(depfile).write_text(f"{out / 'scripts.c'}: {names}\n", "utf-8")


main(*sys.argv[1:])
