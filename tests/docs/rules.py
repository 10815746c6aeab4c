"""Extracts the rules for Redis' ACLs from holdfast-url(7): rules.py MAN-PAGE

Run as a program, it prints a C header with the rules for a client whose names have the prefix
`lk:'. The header has three parts: KEYS, CHANNELS and COMMANDS.
"""

import re
import sys


def blocks(path, title):
    """Returns the literal blocks of a subsection, as lists of words."""
    with open(path, encoding='utf-8') as f:
        page = f.read()
    part = re.search(r'^\.Ss %s$(.*?)^\.S[hs] ' % re.escape(title), page,
                     re.MULTILINE | re.DOTALL)[1]
    return [block.split() for block in re.findall(
        r'^\.Bd -literal.*?\n(.*?)^\.Ed$', part, re.MULTILINE | re.DOTALL)]


def of_redis(path):
    """Returns the whole command, the rules for watching, and those for braces in names."""
    whole, watching, braces = blocks(path, 'Options of redis')
    return whole, ['+config|get', '+psubscribe'] + watching, braces


def of_redlock(path):
    (whole,) = blocks(path, 'Options of redlock')
    return whole


if __name__ == '__main__':
    rules = of_redis(sys.argv[1])[0][5:]
    parts = {'KEYS': '~', 'CHANNELS': '&r', 'COMMANDS': '+'}
    assert all(rule[0] in ''.join(parts.values()) for rule in rules), rules
    for part, first in parts.items():
        print('#define ACL_%s "%s"' % (
            part, ' '.join(rule for rule in rules if rule[0] in first)))
