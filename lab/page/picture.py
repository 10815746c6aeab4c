"""Draws the demo as a terminal: picture.py HOLDFAST FILE.svg

Runs `holdfast lab oversell' and writes its output as an SVG. Text stays text.
All columns have the same width, and each word begins at its column, so that the
picture looks the same with every font. Bars are drawn as boxes.
"""

import html
import os
import re
import subprocess
import sys

COLUMN, LINE, SIZE = 7.8, 18, 13
MARGIN, TITLE = 16, 34
BACKGROUND, TEXT, DIM = '#0d1117', '#e6edf3', '#8b949e'
GOOD, BAD, BAR = '#3fb950', '#ff7b72', '#58a6ff'
EIGHTHS = ' ▏▎▍▌▋▊▉█'
PROMPT = '$ ./dev demo'


def run(command):
    """Runs the demo and returns its lines."""
    done = subprocess.run([command, 'lab', 'oversell'], check=True,
                          stdout=subprocess.PIPE, encoding='utf-8',
                          env=dict(os.environ, LC_ALL='C.UTF-8'))
    return [PROMPT, '', *done.stdout.rstrip().splitlines()]


def words(line):
    """Returns pairs of a column and a word (or a bar) for each word of the line."""
    return [(found.start(), found[0]) for found in re.finditer(r'\S+', line)]


def is_bar(word):
    return set(word) <= set(EIGHTHS)


def colour(line, column, word):
    sign = re.search('[✓✗]', line)
    if sign and column >= sign.start():
        return GOOD if sign[0] == '✓' else BAD
    if line == PROMPT or re.match(r'(strategy|oversell:|Why:)', line):
        return TEXT
    return DIM if line.startswith('--') or word == '-' else TEXT


def draw(line, number):
    y = TITLE + MARGIN + number * LINE
    for column, word in words(line):
        x = MARGIN + column * COLUMN
        if is_bar(word):
            width = sum(EIGHTHS.index(eighth) for eighth in word) / 8 * COLUMN
            yield ('<rect x="%.1f" y="%d" width="%.1f" height="10" rx="1" '
                   'fill="%s"/>' % (x, y - 9, width, BAR))
        else:
            yield ('<text x="%.1f" y="%d" textLength="%.1f" fill="%s">%s</text>'
                   % (x, y, len(word) * COLUMN, colour(line, column, word),
                      html.escape(word)))


def svg(lines):
    width = round(2 * MARGIN + max(map(len, lines)) * COLUMN)
    height = TITLE + MARGIN + len(lines) * LINE
    dots = ''.join('<circle cx="%d" cy="17" r="5.5" fill="%s"/>' % at for at in
                   ((20, '#ff5f57'), (38, '#febc2e'), (56, '#28c840')))
    return '\n'.join([
        '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
        'viewBox="0 0 %d %d" role="img" aria-labelledby="title" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, '
        'DejaVu Sans Mono, monospace" font-size="%d">' %
        (width, height, width, height, SIZE),
        '<title id="title">The demo: 8 workers sell a stock of 500, without a '
        'lock and with holdfast</title>',
        '<rect width="100%%" height="100%%" rx="8" fill="%s"/>' % BACKGROUND,
        dots,
        *(part for number, line in enumerate(lines)
          for part in draw(line, number)),
        '</svg>', ''])


def texts(picture):
    """Returns the words of a picture, line by line."""
    lines = {}
    for y, word in re.findall(r'<text x="[^"]*" y="(\d+)"[^>]*>([^<]*)<',
                              picture):
        lines.setdefault(int(y), []).append(html.unescape(word))
    return [lines[y] for y in sorted(lines)]


if __name__ == '__main__':
    with open(sys.argv[2], 'w', encoding='utf-8') as file:
        file.write(svg(run(sys.argv[1])))
