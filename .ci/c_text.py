"""Reads C text, for rooms.py, lines.py and papers.py."""
import os
import re

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                   re.S)
SOURCE_FOLDERS = ("src", "cli", "lab")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def files_below(root, folder, endings=(".c", ".h")):
    """Returns the paths of the files, relative to root, sorted."""
    found = []
    for where, _, names in os.walk(os.path.join(root, folder)):
        found += [os.path.relpath(os.path.join(where, name), root)
                  for name in names if name.endswith(endings)]
    return sorted(found)


def without_comments(text):
    """Returns the same lines, with blanks for comments and the contents of strings."""
    def blank(found):
        token = found.group(0)
        if token[0] == "/":
            return " " + "\n" * token.count("\n")
        return token[0] + token[0]
    return TOKEN.sub(blank, text)


def head_comment(text):
    """Returns the first comment of a file, or "" if code precedes it."""
    text = text.replace("/* clang-format off */", "", 1)
    found = re.match(r"(?:\s|#[^\n]*\n)*/\*(.*?)\*/", text, re.S)
    return " ".join(re.sub(r"\n\s*\*", "\n", found[1]).split()) if found else ""


def identifiers(text):
    return set(re.findall(r"\b[A-Za-z_]\w*", without_comments(text)))


def statements(text):
    """Yields each statement outside of all braces, on one line. What is in braces
    is left out, so a definition is "int f(void){}", for example."""
    text = without_comments(text)
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M)
    text = re.sub(r'extern\s+""\s*\{', "", text)
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", text)
    depth, now = 0, ""
    for c in text:
        if c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth < 0: # of extern "C"
                depth = 0
                continue
            if depth:
                continue
            is_function = now.rstrip().endswith(")")
            now += "{}"
            if is_function:
                yield " ".join(now.split())
                now = ""
        elif not depth:
            now += c
            if c == ";":
                yield " ".join(now.split())
                now = ""


def asserted(text):
    """Returns the functions that a file declares where HF__ASSERT is defined, see
    policy/verify.h: HF__VERIFIER(lease) declares hf__lease_verify()."""
    return {"hf__%s_verify" % what for what in
            re.findall(r"^HF__VERIFIER\((\w+)\)", text, re.M)}


def declared(text):
    """Returns the functions and objects with external linkage that a file declares but
    does not define."""
    names = asserted(text)
    for statement in statements(text):
        words = statement.split()
        if not statement.endswith(";") or {"typedef", "static"} & set(words):
            continue
        if "=" in statement or "{}" in statement and "(" not in statement:
            continue
        pointer = re.match(r"extern\b.*\(\s*\*\s*(\w+)\s*\)\s*\(", statement) or \
            re.match(r"\w+_fn\s+(\w+);", statement) # by the type of a function
        if pointer:
            names.add(pointer[1])
            continue
        function = re.search(r"\w[\s*]+(\w+)\s*\(", statement)
        if function and not statement.startswith("_Static_assert"):
            names.add(function[1])
        elif words[0] == "extern":
            for one in re.sub(r"\[[^]]*\]|;", "", statement).split(","):
                names.add(re.findall(r"\w+", one)[-1])
    return names


def static_functions(text):
    """Returns the static functions that a file defines."""
    return {found[1] for statement in statements(text)
            if re.match(r"static .*\) ?\{\}$", statement)
            for found in [re.search(r"(\w+)\s*\(", statement)] if found}



def share_a_word(function, file):
    """Returns whether the name of a function shares a word with the name of its file.
    lines matches line, and answered matches answer."""
    def alike(a, b):
        short, long = sorted((a, b), key=len)
        return a == b or len(short) > 2 and long.startswith(short)
    return any(alike(a, b) for a in function.lower().split("_")
               for b in file.lower().split("_"))
