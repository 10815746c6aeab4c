"""Tests the check of docs/where.md and docs/moved.md: papers.py ROOT.

The check must accept a small tree, and must report one mistake of each kind in it.
"""
import os
import sys

root = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(root, 'tests', 'docs'))
cases = __import__('cases')

RIGHT = {
    'src/policy/lease.c': '#include "policy/lease.h"\n\n/*\n * When a hold is'
                          '\n * renewed, and for how long.\n */\n'
                          'int lease_next(void)\n{\n    return 1; /* line_put */'
                          '\n}\n',
    'tests/lib/tool.py': 'tool_run = 1\n',
    'docs/where.md': '# Where\n\n| question | file | words |\n|---|---|---|\n' +
                     '| When is it renewed? | `src/policy/lease.c` |'
                     ' a hold is renewed, how long |\n' * 19 +
                     '| And by a link? | [lease](../src/policy/lease.c) |'
                     ' Renewed |\n',
    'docs/moved.md': '| old | new |\n|---|---|\n'
                     '| `src/core/gate.c` | `policy/lease.c` |\n'
                     '| `gate_next()` | `lease_next()` |\n'
                     '| `ear_*` | gone, or `tool_*` |\n',
}


tree = __import__('small_tree').SmallTree(root, 'papers.py', RIGHT)
check, finds = tree.check, tree.finds


def both_are_right_without_a_mistake():
    status, out = check()
    assert status == 0 and not out, out


def a_paper_that_is_missing_is_named():
    finds('docs/where.md: is not there', 'docs/where.md',
          RIGHT['docs/where.md'], '')


def a_file_that_is_not_there_is_named():
    finds('src/policy/leas.c is not there', 'docs/where.md', 'lease.c', 'leas.c')


def a_link_that_leads_nowhere_is_named():
    finds('src/policy/leas.c is not there', 'docs/where.md',
          '../src/policy/lease.c', '../src/policy/leas.c')


def words_that_the_head_comment_does_not_have_are_named():
    finds('does not have: short', 'docs/where.md', 'how long', 'short')


def words_of_another_comment_do_not_count():
    finds('does not have: line_put', 'docs/where.md', 'how long', 'line_put')


def too_few_rows_are_named():
    row = '| When is it renewed? | `src/policy/lease.c` |' \
          ' a hold is renewed, how long |\n'
    finds('19 rows, fewer than 20', 'docs/where.md', row, '')


def a_new_path_that_is_not_there_is_named():
    finds('policy/queue.c is not there', 'docs/moved.md', 'policy/lease.c',
          'policy/queue.c')


def a_new_name_that_is_nowhere_is_named():
    finds('lease_now is nowhere', 'docs/moved.md', 'lease_next', 'lease_now')


def a_new_pattern_that_is_nowhere_is_named():
    finds('tools_* is nowhere', 'docs/moved.md', 'tool_*', 'tools_*')


def an_old_name_that_is_still_there_is_named():
    finds('gate_next is an old name, and still there', 'tests/lib/tool.py',
          'tool_run = 1', 'tool_run = gate_next')


def an_old_pattern_that_is_still_there_is_named():
    finds('ear_* is an old name', 'src/policy/lease.c', 'line_put', 'ear_put')


def a_moved_without_rows_is_named():
    finds('there is no row', 'docs/moved.md', RIGHT['docs/moved.md'],
          'nothing moved\n')


names = dict(globals())
sys.exit(cases.run([case for name, case in names.items()
                    if name.split('_')[0] in ('a', 'an', 'both', 'words', 'too')
                    and callable(case)]))
