"""Tests the check of words: words.py ROOT.

The check must accept a small tree, and must report one mistake of each kind in it.
"""
import os
import sys

root = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(root, 'tests', 'docs'))
cases = __import__('cases')

LIST = '''# what to write instead
anew : again
not meant any ?more : no longer wanted
allow src/*.c starts anew : a quotation
'''
RIGHT = {
    '.ci/words.list': LIST,
    'src/lease.c': '/* It starts anew. */\nint renew(void);\n',
    'README.md': '# Locks\n\nA lock is renewed.\n',
    'docs/man/lock.3': '.SH NAME\nlock \\- a lock\n',
}


tree = __import__('small_tree').SmallTree(root, 'words.py', RIGHT)
check, finds = tree.check, tree.finds


def a_tree_without_a_mistake_is_right():
    status, out = check()
    assert status == 0 and not out, out


def a_word_is_found_in_a_document():
    finds('README.md:3: Anew -> again', 'README.md', 'A lock is renewed.',
          'Anew, it is renewed.')


def a_word_is_found_in_a_manual_page():
    finds('docs/man/lock.3:2: anew', 'docs/man/lock.3', 'a lock', 'a lock, anew')


def a_word_is_found_in_a_comment():
    finds('src/lease.c:1: anew', 'src/lease.c', 'It starts', 'It starts anew; it')


def a_word_is_found_in_a_string():
    finds('src/lease.c:2: anew', 'src/lease.c', 'int renew(void);',
          'const char *text = "try anew";')


def a_phrase_is_found_where_a_line_of_a_comment_breaks():
    finds('src/lease.c:1: not meant any more -> no longer wanted', 'src/lease.c',
          'It starts anew.', 'It starts anew; not meant\n * any more.')


def a_phrase_is_found_where_a_string_breaks():
    finds('src/lease.c:2: not meant any more', 'src/lease.c', 'int renew(void);',
          'const char *text = "not meant "\n    "any more";')


def a_part_of_a_word_is_none():
    status, out = check('README.md', 'renewed', 'canew_x')
    assert status == 0 and not out, out


def what_is_allowed_elsewhere_is_found():
    finds('README.md:3: anew', 'README.md', 'is renewed', 'starts anew')


def an_exception_that_nothing_needs_is_named():
    finds('nothing needs this line: allow src/*.c starts anew', 'src/lease.c',
          'starts anew', 'starts again')


names = dict(globals())
sys.exit(cases.run([case for name, case in names.items()
                    if name.split('_')[0] in ('a', 'an', 'what') and callable(case)]))
