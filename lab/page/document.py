#!/usr/bin/env python3
"""Updates the run and the picture in docs/lab.md: document.py [HOLDFAST]

It runs the whole lab on temporary servers, and needs Debian's chromium.
"""

import os
import re
import subprocess
import sys
import tempfile

root = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
command = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
    root, 'build/cli/holdfast')
SCENARIO, WIDTH, HEIGHT = 'stall', 1280, 1180


def picture(page, out):
    """Takes a picture of the scenario in a frame, because a frame can begin at a heading."""
    frame = os.path.join(os.path.dirname(page), 'frame.html')
    with open(frame, 'w', encoding='utf-8') as file:
        file.write('<!DOCTYPE html><style>body{margin:0}iframe{border:0;'
                   'width:%dpx;height:%dpx}</style><iframe src="%s#%s">' %
                   (WIDTH, HEIGHT, os.path.basename(page), SCENARIO))
    subprocess.run(['chromium', '--headless', '--no-sandbox', '--disable-gpu',
                    '--hide-scrollbars', '--allow-file-access-from-files',
                    '--user-data-dir=' + os.path.dirname(page),
                    '--window-size=%d,%d' % (WIDTH, HEIGHT),
                    '--screenshot=' + out, 'file://' + frame], check=True,
                   stderr=subprocess.DEVNULL)


def main():
    document = os.path.join(root, 'docs/lab.md')
    with tempfile.TemporaryDirectory() as directory:
        page = os.path.join(directory, 'report.html')
        run = subprocess.run([command, 'lab', 'all', '--servers', '--html',
                              page], check=True, encoding='utf-8',
                             stdout=subprocess.PIPE,
                             env=dict(os.environ, LC_ALL='C.UTF-8')).stdout
        picture(page, os.path.join(root, 'docs/lab.png'))
    lines = [line.rstrip() for line in run.splitlines()
             if not line.startswith('The page is')]
    with open(document, encoding='utf-8') as file:
        text = file.read()
    text = re.sub(r'(?s)```text\n.*?```', lambda _: '```text\n%s\n```' %
                  '\n'.join(lines).strip(), text)
    with open(document, 'w', encoding='utf-8') as file:
        file.write(text)


main()
