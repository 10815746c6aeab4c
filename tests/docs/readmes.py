"""Compares README.md with README.zh.md: readmes.py ROOT.

The Chinese text is written freely. What a reader copies or relies on must agree:
code blocks (without their comments), quoted words, figures in tables, links,
pictures, and the order of the headings.
"""

import os
import re
import sys

import cases

root = os.path.abspath(sys.argv[1])


def read(name):
    with open(os.path.join(root, name), encoding='utf-8') as f:
        return f.read()


english, chinese = read('README.md'), read('README.zh.md')
FENCED = r'(?ms)^```(\w+)\n(.*?)^```$'


def without_comments(language, code):
    comment = r'/\*.*?\*/' if language == 'c' else r'\s#\s.*'
    return [re.sub(comment, '', line).rstrip() for line in code.splitlines()]


def commands(text):
    blocks = [(language, without_comments(language, code))
              for language, code in re.findall(FENCED, text)]
    indented = [without_comments('sh', line)[0].strip() for line in
                re.findall(r'(?m)^    (\S.*)$', re.sub(FENCED, '', text))]
    return blocks, indented


def figures(text):
    """Returns the numbers of each row of each table, sorted."""
    return [sorted(re.findall(r'\d+(?:\.\d+)*', row))
            for row in re.findall(r'(?m)^\|.*\|$', text)]


def cells(text):
    return [len(re.split(r'(?<!\\)\|', row))
            for row in re.findall(r'(?m)^\|.*\|$', text)]


def links(text):
    return [target.replace('README.zh.md', 'README').replace(
                'README.md', 'README')
            for target in re.findall(r'\]\(([^)]+)\)', text)]


def quoted(text):
    plain = re.sub(FENCED, '', text)
    return sorted(re.sub(r'\s+', ' ', word)
                  for word in re.findall(r'`([^`]+)`', plain))


def headings(text):
    return re.findall(r'(?m)^(#+) ', re.sub(FENCED, '', text))


def same(what, least):
    ours, theirs = what(english), what(chinese)
    assert len(ours) >= least, ours
    for one, other in zip(ours, theirs):
        assert one == other, (one, other)
    assert len(ours) == len(theirs), (ours, theirs)


def test_commands_are_the_same():
    same(lambda text: commands(text)[0], 4)
    same(lambda text: commands(text)[1], 2)


def test_figures_are_the_same():
    same(figures, 20)
    same(cells, 20)


def test_links_are_the_same():
    same(links, 30)


def test_quoted_words_are_the_same():
    same(quoted, 30)


def test_headings_are_the_same():
    same(headings, 8)


def test_each_leads_to_the_other_in_its_first_lines():
    assert '(README.zh.md)' in '\n'.join(english.splitlines()[:5])
    assert '(README.md)' in '\n'.join(chinese.splitlines()[:5])


def test_a_difference_is_found():
    """Each check must notice one change of the text."""
    for what, old, new in (
            (commands, 'holdfast run -n nightly', 'holdfast run nightly'),
            (commands, './dev test', './dev tests'),
            (figures, ' 5.1 ', ' 5.2 '),
            (cells, '| poll |', '|'),
            (links, 'docs/fencing.md', 'docs/lab.md'),
            (quoted, '`HF_EINVAL`', '`HF_ENOMEM`'),
            (headings, '\n## Figures', '\n### Figures')):
        assert english.count(old) >= 1, old
        assert what(english) != what(english.replace(old, new, 1)), old
    assert commands(english) == commands(
        english.replace('# or not at all', '# oder gar nicht'))


sys.exit(cases.run(cases.of(globals())))
