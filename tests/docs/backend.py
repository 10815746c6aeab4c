"""Compares docs/backend.md with src/backends/backend.h and the example.

backend.py SOURCE_DIRECTORY
"""

import os
import re
import sys

import cases
from snippet import snippets

root = sys.argv[1]
path = os.path.join(root, 'docs', 'backend.md')


def read(*parts):
    with open(os.path.join(root, *parts), encoding='utf-8') as f:
        return f.read()


text = read('docs', 'backend.md')
header = read('src', 'backends', 'backend.h')
rows = [[cell.strip() for cell in line.strip('|').split('|')]
        for line in text.splitlines() if line.startswith('|')]


def test_what_is_shown_is_the_example():
    example = read('src', 'backends', 'example', 'example.c')
    shown = snippets(path, 'c')
    assert shown
    for snippet in shown:
        assert snippet in example, snippet


def test_every_slot_is_described():
    table = re.search(r'^struct hf__backend \{.*?^\};', header, re.M | re.S)[0]
    slots = re.findall(r'\(\*(\w+)\)\(', table)
    assert len(slots) > 10, slots
    for slot in slots:
        assert f'`{slot}`' in text, slot


def test_every_outcome_is_in_the_table():
    outcomes = re.search(r'^enum hf__outcome \{.*?^\};', header, re.M | re.S)[0]
    named = re.findall(r'^    (HF__\w+) =', outcomes, re.M)
    codes = re.findall(r'\bE[A-Z]{3,}\b', re.search(
        r'uses these codes: .*?\*/', header, re.S)[0])
    assert len(named) == 6 and len(codes) > 5, (named, codes)
    cells = ' '.join(row[1] for row in rows if len(row) == 3)
    for word in named + ['HF_' + code for code in codes]:
        assert f'`{word}`' in cells, word


def test_it_is_short():
    """Comments and blank lines count too."""
    example = read('src', 'backends', 'example', 'example.c')
    server = read('tests', 'lib', 'example_server.py')
    for limit, code in ((500, example), (250, server)):
        assert len(code.splitlines()) <= limit, len(code.splitlines())


sys.exit(cases.run(cases.of(globals())))
