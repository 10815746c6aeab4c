"""Compares docs/demo.svg with a run of the demo: picture.py ROOT COMMAND.

The words of the picture must be those of a new run, line by line; the figures
may differ. If the words have changed, run `./dev picture`.
"""

import os
import re
import sys
import xml.etree.ElementTree

import cases

root, command = (os.path.abspath(path) for path in sys.argv[1:3])
sys.path.insert(0, os.path.join(root, 'lab', 'page'))
import picture  # noqa: E402

path = os.path.join(root, 'docs', 'demo.svg')
with open(path, encoding='utf-8') as f:
    shown = f.read()
lines = picture.run(command)


def without_figures(rows):
    return [[re.sub(r'\d+(\.\d+)?', 'N', word) for word in row] for row in rows]


def test_its_words_are_those_of_a_run():
    fresh = picture.texts(picture.svg(lines))
    assert len(fresh) > 8, fresh
    assert without_figures(picture.texts(shown)) == without_figures(fresh), (
        'docs/demo.svg is not what the demo prints: ./dev picture')


def test_a_picture_has_every_word_of_its_run():
    told = [[word for _, word in picture.words(line)
             if not picture.is_bar(word)] for line in lines]
    assert picture.texts(picture.svg(lines)) == [row for row in told if row]
    assert picture.svg(lines) == picture.svg(list(lines))


def test_its_rows_say_what_the_demo_is_for():
    text = '\n'.join(' '.join(row) for row in picture.texts(shown))
    assert re.search(r'^none .* oversold by \d+$', text, re.MULTILINE), text
    assert re.search(r'^lock fair shm .* sold exactly 500$', text,
                     re.MULTILINE), text


def test_it_needs_nothing_from_elsewhere():
    tree = xml.etree.ElementTree.fromstring(shown)
    kinds = {one.tag.rsplit('}', 1)[-1] for one in tree.iter()}
    assert kinds == {'svg', 'title', 'rect', 'circle', 'text'}, kinds
    assert shown.count('://') == 1, 'only the name space'


sys.exit(cases.run(cases.of(globals())))
