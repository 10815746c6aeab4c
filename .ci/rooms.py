#!/usr/bin/env -S python3 -B
"""rooms.py BUILD [ROOT [LIST]]: checks that the arrows between the rooms point one way.

A room is a folder. .ci/rooms.list has all rooms, what each may use, and every
exception. An arrow is an #include, or a symbol that one object needs and
another defines, as nm reports for the objects in BUILD, which must be up to
date. Prints a table of the rooms, then all errors, and exits with 1 if there
are any:

  arrow     a file uses a file of a room that its room may not use
  header    a symbol that is not static in X.c is not declared in X.h of the
            same folder, or is also declared elsewhere; X.c does not include X.h
            first; a header declares something that no file defines
  circle    more files of a room call each other in a circle than the room may
            have, or other files than the list names; or rooms use each other
  word      a retired word is part of an identifier or of a file name
  noun      a static function has no word of its file's name
  stale     the list allows something that no file does

It does not see calls through pointers, and code that is in no object of BUILD.
"""
import collections
import fnmatch
import json
import os
import re
import subprocess
import sys

import c_text
from circles import find_circles
from rooms_list import List, stem

PUBLIC = "include/holdfast.h"


class Tree:
    """The files, and what they include, define and need."""

    def __init__(self, root, build, rooms):
        self.root, self.build = root, build
        top = {folder.split("/")[0] for folder in rooms.rooms}
        self.texts = {path: c_text.read(os.path.join(root, path))
                      for folder in sorted(top)
                      for path in c_text.files_below(root, folder)
                      if rooms.room_of(path)}
        self.objects, self.searched = {}, collections.defaultdict(dict)
        self.read_commands(rooms)
        self.needs, self.definers = {}, collections.defaultdict(set)
        for path, object_file in self.objects.items():
            self.read_symbols(path, object_file)
        self.public = c_text.declared(self.texts.get(PUBLIC, ""))

    def name(self, path):
        """Returns the path relative to the root, or for a generated file to the build."""
        path = os.path.normpath(path)
        at = self.build if path.startswith(self.build + "/") else self.root
        return os.path.relpath(path, at)

    def read_commands(self, rooms):
        """Finds the first object of each file, and the include path of each
        room."""
        path = os.path.join(self.build, "compile_commands.json")
        for command in json.loads(c_text.read(path)):
            folder = command["directory"]
            file = self.name(os.path.join(folder, command["file"]))
            room = rooms.room_of(file)
            object_file = os.path.join(folder, command["output"])
            if not room or not os.path.exists(object_file):
                continue
            self.objects.setdefault(file, object_file)
            for where in re.findall(r"-I(\S+)", command["command"]):
                where = self.name(os.path.join(folder, where))
                self.searched[room][where] = True

    def read_symbols(self, path, object_file):
        lines = subprocess.run(["nm", object_file], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.splitlines()
        self.needs[path] = set()
        for *_, kind, symbol in (line.split() for line in lines):
            if kind == "U":
                self.needs[path].add(symbol)
            elif kind in "TDBRCVW" and not symbol.startswith("_"):
                self.definers[symbol].add(path)

    def includes(self, path, room):
        """Yields pairs of the quoted word, and the file in the tree or None."""
        for bracket, word in re.findall(r'^\s*#\s*include\s+(["<])([^">]+)',
                                        self.texts[path], re.M):
            places = [os.path.dirname(path)] if bracket == '"' else []
            found = [os.path.normpath(os.path.join(place, word))
                     for place in places + list(self.searched[room])]
            known = [f for f in found if f in self.texts or
                     os.path.exists(os.path.join(self.build, f))]
            yield word, known[0] if known else None

    def definer(self, symbol, path, room_of):
        """Returns the file that defines a symbol for `path`, in the room of `path` if possible."""
        found = sorted(self.definers.get(symbol, ()))
        near = [f for f in found if room_of(f) == room_of(path)]
        return (near + found)[0] if near or len(found) == 1 else None


class Lint:
    def __init__(self, tree, rooms):
        self.tree, self.rooms, self.wrong = tree, rooms, []
        self.arrows = collections.defaultdict(set)  # room: rooms
        self.inward = collections.defaultdict(set)  # allowed, not public arrows
        self.calls = collections.defaultdict(set)   # file: files of its room

    def say(self, kind, text):
        self.wrong.append("%-7s %s" % (kind, text))

    def may(self, path, target, symbol):
        """Returns whether path may use target. An empty symbol represents an #include."""
        uses = self.rooms.rooms[self.rooms.room_of(path)]
        if self.rooms.room_of(target) in uses or stem(target) in uses:
            return True
        if symbol in self.tree.public and "public" in uses:
            return True
        for edge in self.rooms.edges:
            if fnmatch.fnmatch(stem(path), edge[0]) and \
                    fnmatch.fnmatch(stem(target), edge[1]) and \
                    (not symbol or not edge[2] or symbol in edge[2]):
                self.rooms.used.add(edge)
                return True
        return False

    def arrow(self, path, target, symbol=""):
        room, other = (self.rooms.room_of(f) for f in (path, target))
        if room == other:
            if symbol and path != target:
                self.calls[path].add(target)
            return []
        if not other:
            return [symbol or "#include"]
        self.arrows[room].add(other)
        if not self.may(path, target, symbol):
            return [symbol or "#include"]
        if symbol not in self.tree.public:
            self.inward[room].add(other)
        return []

    def look_at_arrows(self):
        wrong = collections.defaultdict(list)
        for path in self.tree.texts:
            room = self.rooms.room_of(path)
            for word, target in self.tree.includes(path, room):
                if target:
                    wrong[path, target] += self.arrow(path, target)
        for path, symbols in self.tree.needs.items():
            for symbol in sorted(symbols):
                target = self.tree.definer(symbol, path, self.rooms.room_of)
                if target:
                    wrong[path, target] += self.arrow(path, target, symbol)
        for (path, target), by in sorted(wrong.items()):
            if by:
                self.say("arrow", "%s -> %s : %s" % (path, target, " ".join(by)))

    def look_at_headers(self):
        declared = {path: c_text.declared(text)
                    for path, text in self.tree.texts.items()}
        where = collections.defaultdict(set)
        for path, symbols in declared.items():
            for symbol in symbols:
                where[symbol].add(path)
        for symbol, definers in sorted(self.tree.definers.items()):
            definers = {f for f in definers if f in self.tree.texts}
            if definers and symbol != "main":
                self.look_at_symbol(symbol, definers, where[symbol])
        # Without all objects, a symbol may have a definition that is not seen.
        built = {f for f in self.tree.texts if f.endswith(".c")} <= \
            set(self.tree.objects)
        at_times = set().union(*map(c_text.asserted, self.tree.texts.values()))
        for symbol in sorted(set(where) - set(self.tree.definers) - at_times):
            if built and not self.is_excepted(symbol, where[symbol]):
                self.say("header", "%s declares %s, which no file defines" % (
                    " ".join(sorted(where[symbol])), symbol))
        for path in self.tree.texts:
            own = stem(path) + ".h"
            if not path.endswith(".c") or own not in self.tree.texts:
                continue
            first = next(self.tree.includes(path, self.rooms.room_of(path)),
                         ("", ""))
            if first[1] != own:
                self.say("header", "%s includes %s first, not %s" % (
                    path, first[0] or "nothing", os.path.basename(own)))

    def is_excepted(self, symbol, where):
        for exception in self.rooms.declared:
            if fnmatch.fnmatch(symbol, exception[0]) and \
                    (where or {"-"}) == {exception[1]}:
                self.rooms.used.add(exception)
                return True
        return False

    def look_at_symbol(self, symbol, definers, where):
        wanted = {stem(f) + ".h" for f in definers}
        if where == wanted or where == {PUBLIC} or self.is_excepted(symbol, where):
            return
        self.say("header", "%s of %s is declared in %s" % (
            symbol, " ".join(sorted(definers)),
            " ".join(sorted(where)) or "no header"))

    def look_at_circles(self):
        members = [f for f in self.tree.objects]
        graph = {f: self.calls[f] for f in members}
        for circle in find_circles(graph):
            room = self.rooms.room_of(circle[0])
            listed = [f for f in self.rooms.circles if f in circle]
            self.rooms.used |= set(listed)
            text = "%d files: %s" % (len(circle), " ".join(
                os.path.relpath(f, room) for f in circle))
            if not listed:
                if len(circle) > self.rooms.limits[room]:
                    self.say("circle", "%s: %s" % (room, text))
            elif len(circle) > self.rooms.circles[listed[0]]:
                self.say("circle", "%s: more than the %d that are listed: %s" % (
                    room, self.rooms.circles[listed[0]], text))
            elif len(circle) < self.rooms.circles[listed[0]]:
                self.say("circle", "%s: fewer than the %d that are listed, "
                         "tighten the list: %s" % (
                             room, self.rooms.circles[listed[0]], text))

        for rooms in find_circles({r: self.inward[r] for r in self.rooms.rooms}):
            self.say("circle", "rooms that use each other: %s" % " ".join(rooms))

    def look_at_words(self):
        retired = self.rooms.retired | {w + "s" for w in self.rooms.retired}
        for path, text in self.tree.texts.items():
            names = c_text.identifiers(text) | {stem(os.path.basename(path))}
            found = [name for name in sorted(names)
                     if retired & set(name.lower().split("_"))]
            if found:
                self.say("word", "%s: %s" % (path, " ".join(found)))

    def look_at_nouns(self):
        for path, text in self.tree.texts.items():
            file = stem(os.path.basename(path))
            for function in sorted(c_text.static_functions(text)):
                noun = self.rooms.nouns.get(path)
                if noun and function.startswith(noun + "_"):
                    self.rooms.used.add(("noun", path))
                elif path.endswith(".c") and \
                        not c_text.share_a_word(function, file):
                    self.say("noun", "%s: %s" % (path, function))

    def table(self):
        print("%-24s %5s %6s  %s" % ("room", "files", "code", "uses"))
        for room in self.rooms.rooms:
            texts = [text for path, text in self.tree.texts.items()
                     if self.rooms.room_of(path) == room]
            code = sum(bool(line.strip()) for text in texts for line in
                       c_text.without_comments(text).splitlines())
            uses = [r for r in self.rooms.rooms if r in self.arrows[room]]
            print("%-24s %5d %6d  %s" % (room, len(texts), code, " ".join(uses)))

    def run(self):
        self.look_at_arrows()
        self.look_at_headers()
        self.look_at_circles()
        self.look_at_words()
        self.look_at_nouns()
        for text in self.rooms.stale():
            self.say("stale", text)
        self.table()
        for text in self.wrong:
            print(text)
        print("rooms: %s" % (len(self.wrong) or "nothing") + " wrong")
        return 1 if self.wrong else 0


def main(build, root=None, rooms=None):
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.abspath(root or os.path.dirname(here))
    rooms = List(rooms or os.path.join(root, ".ci", "rooms.list"))
    return Lint(Tree(root, os.path.abspath(build), rooms), rooms).run()


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
