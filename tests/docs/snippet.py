"""Prints a code block of a document: snippet.py FILE LANGUAGE NUMBER"""

import re
import sys


def snippets(path, language):
    with open(path, encoding='utf-8') as f:
        text = f.read()
    return re.findall(r'^```%s\n(.*?)^```$' % re.escape(language), text,
                      re.MULTILINE | re.DOTALL)


if __name__ == '__main__':
    sys.stdout.write(snippets(sys.argv[1], sys.argv[2])[int(sys.argv[3]) - 1])
