"""Reads rooms.list, for rooms.py."""
import os
import sys

import c_text


def stem(path):
    return os.path.splitext(path)[0]


class List:
    """The contents of rooms.list."""

    def __init__(self, path):
        self.rooms = {}     # folder: what it may use
        self.limits = {}    # folder: files in a circle without an exception
        self.edges = []     # (from, to, symbols), globs, without .c or .h
        self.declared = []  # (symbol, header), globs
        self.circles = {}   # file: number of files in its circle
        self.nouns = {}     # file: the word of its static functions
        self.retired = set()
        self.used = set()   # the exceptions that some file needs
        for number, line in enumerate(c_text.read(path).splitlines(), 1):
            line, _, reason = (part.strip() for part in
                               line.split("#")[0].partition(" : "))
            if line:
                try:
                    self.take(line.split(), reason)
                except (ValueError, KeyError, IndexError) as error:
                    sys.exit("%s:%d: %s: %s" % (path, number, line, error))

    def take(self, words, reason):
        kind, words = words[0], words[1:]
        if kind in ("edge", "declared", "circle", "noun") and not reason:
            raise ValueError("a reason is missing")
        if kind == "room":
            self.rooms[words[0]] = reason.split()
            self.limits[words[0]] = int(words[1])
        elif kind == "edge":
            self.edges.append((stem(words[0]), stem(words[1]), tuple(words[2:])))
        elif kind == "declared":
            self.declared.append((words[0], words[1]))
        elif kind == "circle":
            self.circles[words[0]] = int(words[1])
        elif kind == "noun":
            self.nouns[words[0]] = words[1]
        elif kind == "retired":
            self.retired |= set(words)
        else:
            raise ValueError("unknown word")

    def room_of(self, path):
        folder = os.path.dirname(path)
        while folder and folder not in self.rooms:
            folder = os.path.dirname(folder)
        return folder

    def stale(self):
        for edge in self.edges:
            if edge not in self.used:
                yield "edge %s %s" % edge[:2]
        for exception in self.declared:
            if exception not in self.used:
                yield "declared %s %s" % exception
        for file in self.circles:
            if file not in self.used:
                yield "circle %s %d" % (file, self.circles[file])
        for file in self.nouns:
            if ("noun", file) not in self.used:
                yield "noun %s %s" % (file, self.nouns[file])
