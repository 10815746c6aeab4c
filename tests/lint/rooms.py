"""Tests the lint of the rooms: rooms.py ROOT COMPILER...

The lint must accept a small tree, and must report one defect of each kind in it.
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

root = os.path.abspath(sys.argv[1])
compiler = sys.argv[2:]
sys.path.insert(0, os.path.join(root, 'tests', 'docs'))
cases = __import__('cases')

RIGHT = {
    'rooms.list': '''
# A comment.
room include 1 :
room src/base 2 : include
room src/core 2 : include src/base
room src/redis 1 : include public src/base/leaf
room src/vote 1 : include src/base/leaf
room cli 1 : include public
edge src/vote/* src/redis/pipe.c : a vote goes over a connection
edge src/core/core.c src/redis/table.c table : the one that is built in
declared entry - : of every module
circle src/redis/table.c 2 : the state machine
retired ear keeper
''',
    'include/holdfast.h': '#ifdef __cplusplus\nextern "C" {\n#endif\n'
                          'int hf_open(int n);\n'
                          '#ifdef __cplusplus\n}\n#endif\n',
    'src/base/text.h': '/* int nothing(void); */\nint text_put(int);\n',
    'src/base/text.c': '#include "base/text.h"\nint text_put(int n)\n'
                       '{\n    return n;\n}\n',
    'src/base/leaf.h': 'struct leaf {\n    int (*f)(int n);\n};\n'
                       'static inline int leaf_one(void)\n{\n    return 1;\n}\n',
    'src/core/core.h': 'struct core {\n    int n;\n};\n'
                       'int core_open(struct core *);\n',
    'src/core/core.c': '#include "core/core.h"\n#include "base/text.h"\n'
                       '#include "core/line.h"\n#include "redis/table.h"\n'
                       '#include <holdfast.h>\n'
                       'int core_open(struct core *c)\n'
                       '{\n    return c->n + text_put(line_ask(1)) + table;\n}\n'
                       'int hf_open(int n)\n{\n    return n;\n}\n',
    'src/core/line.h': 'int line_ask(int);\n',
    'src/core/line.c': '#include "core/line.h"\nint line_ask(int n)\n'
                       '{\n    return n;\n}\n',
    'src/redis/pipe.h': 'int pipe_send(int);\n',
    'src/redis/pipe.c': '#include "pipe.h"\n#include "base/leaf.h"\n'
                        '#include "table.h"\nint pipe_send(int n)\n'
                        '{\n    return table_find(n) + leaf_one();\n}\n',
    'src/redis/table.h': 'extern const int table;\nint table_find(int);\n',
    'src/redis/table.c': '#include "table.h"\n#include "pipe.h"\n'
                         '#include <holdfast.h>\n'
                         'const int table = 1;\nint table_find(int n)\n'
                         '{\n    return n ? 0 : pipe_send(n) + hf_open(n);\n}\n'
                         'int entry(void)\n{\n    return 1;\n}\n',
    'src/vote/vote.h': 'int vote_start(int);\n',
    'src/vote/vote.c': '#include "vote.h"\n#include "redis/pipe.h"\n'
                       'int vote_start(int n)\n{\n    return pipe_send(n);\n}\n',
    'cli/main.c': '#include <holdfast.h>\n'
                  'int main(void)\n{\n    return hf_open(0);\n}\n',
}


def write(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)


def compiled(folder, files):
    """Writes and compiles the files; returns the build folder. Keeps the objects of files that
    have not changed, because no change of a header here changes their symbols."""
    write(folder, files)
    build = os.path.join(folder, 'build')
    os.makedirs(build, exist_ok=True)
    commands = []
    for name, text in files.items():
        if not name.endswith('.c'):
            continue
        output = name.replace('/', '_') + '.o'
        command = [*compiler, '-w', '-I../include', '-I../src', '-c',
                   '../' + name, '-o', output]
        if text != RIGHT.get(name) or not os.path.exists(
                os.path.join(build, output)):
            subprocess.run(command, cwd=build, check=True)
        commands.append({'directory': build, 'command': ' '.join(command),
                         'file': '../' + name, 'output': output})
    write(build, {'compile_commands.json': json.dumps(commands)})
    return build


def lint(change=()):
    """Returns the exit status, the lines of errors and the output of the lint.
    A change is (file, text, its replacement)."""
    files = dict(RIGHT)
    for name, before, after in change:
        text = files.get(name, '')
        assert before in text, (name, before)
        files[name] = text.replace(before, after, 1) if before else text + after
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(right_tree.name, folder, dirs_exist_ok=True)
        build = compiled(folder, files)
        done = subprocess.run(
            [sys.executable, '-B', os.path.join(root, '.ci', 'rooms.py'), build,
             folder, os.path.join(folder, 'rooms.list')],
            check=False, encoding='utf-8', stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
    wrong = [line for line in done.stdout.splitlines() if line.split()[0] in
             ('arrow', 'header', 'circle', 'word', 'noun', 'stale')]
    return done.returncode, wrong, done.stdout


def finds(kind, text, *change):
    status, wrong, out = lint(change)
    assert status == 1, out
    assert any(line.startswith(kind) and text in line for line in wrong), out
    return wrong


def finds_only(kind, text, *change):
    wrong = finds(kind, text, *change)
    assert len(wrong) == 1, wrong


def the_tree_is_right_without_a_defect():
    status, wrong, out = lint()
    assert status == 0 and not wrong, out
    assert 'src/core                     4' in out, out


def a_call_of_a_room_above_is_named_with_its_symbol():
    finds_only('arrow', 'src/base/text.c -> src/core/line.c : line_ask',
               ('src/base/text.c', 'return n', 'return line_ask(n)'))


def an_include_of_a_room_above_is_named():
    finds_only('arrow', 'src/base/leaf.h -> src/core/core.h : #include',
               ('src/base/leaf.h', '', '#include "core/core.h"\n'))


def a_backend_may_include_leaves_alone():
    finds_only('arrow', 'src/redis/pipe.c -> src/base/text.h : #include',
               ('src/redis/pipe.c', '#include "table.h"',
                '#include "table.h"\n#include "base/text.h"'))


def a_backend_may_not_use_another_but_for_what_is_listed():
    finds_only('arrow', 'src/vote/vote.c -> src/redis/table.c : table_find',
               ('src/vote/vote.c', 'pipe_send(n)',
                'pipe_send(n) + table_find(n)'))


def an_edge_is_for_its_symbols_alone():
    finds_only('arrow', 'src/core/core.c -> src/redis/table.c : table_find',
               ('src/core/core.c', '+ table;', '+ table_find(table);'))


def the_command_uses_the_public_header_alone():
    finds_only('arrow', 'cli/main.c -> src/core/line.c : line_ask',
               ('cli/main.c', 'hf_open(0)', 'hf_open(line_ask(0))'))


def a_public_function_is_of_the_room_above_for_the_rooms_below():
    finds_only('arrow', 'src/base/text.c -> src/core/core.c : hf_open',
               ('src/base/text.c', 'return n', 'return hf_open(n)'))


def a_function_is_declared_in_the_header_of_its_file():
    finds_only('header', 'line_ask of src/core/line.c is declared in '
               'src/core/core.h', ('src/core/line.h', 'int line_ask(int);', ''),
               ('src/core/core.h', '', 'int line_ask(int);\n'))


def a_function_is_declared_nowhere_else():
    finds_only('header', 'line_ask of src/core/line.c is declared in '
               'src/core/core.h src/core/line.h',
               ('src/core/core.h', '', 'int line_ask(int);\n'))


def a_function_is_not_declared_by_who_calls_it():
    finds_only('header', 'declared in src/core/core.c src/core/line.h',
               ('src/core/core.c', 'int core_open', 'int line_ask(int);\n'
                'int core_open'))


def a_function_that_is_declared_nowhere_is_named():
    finds_only('header', 'more of src/core/line.c is declared in no header',
               ('src/core/line.c', '', 'int more(void)\n{\n    return 1;\n}\n'))


def an_object_is_declared_in_the_header_of_its_file():
    finds_only('header', 'table of src/redis/table.c is declared in '
               'src/redis/pipe.h src/redis/table.h',
               ('src/redis/pipe.h', '', 'extern const int table;\n'))


def a_header_declares_nothing_that_is_gone():
    finds_only('header', 'src/core/line.h declares line_gone',
               ('src/core/line.h', '', 'int line_gone(int);\n'))


def a_file_includes_its_header_first():
    finds_only('header', 'src/core/core.c includes base/text.h first, not core.h',
               ('src/core/core.c', '#include "core/core.h"\n'
                '#include "base/text.h"', '#include "base/text.h"\n'
                '#include "core/core.h"'))


THIRD = ('src/{0}/third.h', '', 'int third(int);\n'), \
    ('src/{0}/third.c', '', '#include "{0}/third.h"\n#include "{0}/{1}.h"\n'
     'int third(int n)\n{{\n    return {2};\n}}\n')


def third(*words):
    return [tuple(part.format(*words) for part in change) for change in THIRD]


def a_circle_of_two_is_allowed_in_the_core():
    status, _, out = lint(third('core', 'line', 'line_ask(n)') + [
        ('src/core/line.c', 'return n', 'return third(n)')])
    assert status == 0, out


def a_circle_of_three_in_the_core_is_named():
    finds_only('circle', 'src/core: 3 files: core.c line.c third.c',
               *third('core', 'core', 'core_open(0)'),
               ('src/core/line.c', 'return n', 'return third(n)'))


def a_circle_in_a_backend_is_listed():
    finds_only('circle', 'src/redis: 2 files: pipe.c table.c',
               ('rooms.list', 'circle src/redis/table.c 2 : the state machine',
                ''))


def a_listed_circle_that_has_grown_is_named():
    finds_only('circle', 'more than the 2 that are listed: 3 files',
               *third('redis', 'pipe', 'pipe_send(n)'),
               ('src/redis/table.c', 'return n ? 0', 'return n ? third(n)'))


def a_listed_circle_that_has_shrunk_is_named():
    finds_only('circle', 'fewer than the 3 that are listed',
               ('rooms.list', 'table.c 2 :', 'table.c 3 :'))


def a_listed_circle_that_is_gone_is_named():
    finds_only('stale', 'circle src/redis/table.c 2',
               ('src/redis/pipe.c', 'table_find(n) + ', ''))


def the_rooms_that_use_each_other_are_named():
    finds_only('circle', 'rooms that use each other: src/redis src/vote',
               ('rooms.list', 'declared entry', 'edge src/redis/pipe.c '
                'src/vote/vote.c : back\ndeclared entry'),
               ('src/redis/pipe.c', '#include "table.h"',
                '#include "table.h"\n#include "vote/vote.h"'))


def an_edge_that_is_gone_is_named():
    finds_only('stale', 'edge src/core/core src/redis/table',
               ('src/core/core.c', '+ table;', ';'),
               ('src/core/core.c', '#include "redis/table.h"\n', ''))


def an_exception_for_a_header_that_is_gone_is_named():
    finds_only('stale', 'declared entry -',
               ('src/redis/table.c', 'int entry', 'static int table_entry'))


def an_exception_needs_a_reason():
    status, _, out = lint([('rooms.list', ' : of every module', '')])
    assert status == 1 and 'a reason is missing' in out, out


def a_retired_word_in_an_identifier_is_named():
    finds_only('word', 'src/core/line.h: EARS hf__line_ear',
               ('src/core/line.h', '', '#define EARS 1\n'
                'struct hf__line_ear {\n    int year, heard;\n};\n'
                '/* keeper */\n'))


def a_retired_word_in_the_name_of_a_file_is_named():
    finds('word', 'src/core/keeper.h: keeper',
          ('src/core/keeper.h', '', 'struct door;\n'))


def a_static_function_without_a_word_of_its_file_is_named():
    finds_only('noun', 'src/core/line.c: find',
               ('src/core/line.c', 'int line_ask(int n)\n{',
                'static int find(int n)\n{\n    return n;\n}\n'
                'static int lines_of(int n)\n{\n    return find(n);\n}\n'
                'int line_ask(int n)\n{\n    n = lines_of(n);'))


def a_noun_may_be_listed():
    finds_only('stale', 'noun src/core/line.c text',
               ('rooms.list', 'retired', 'noun src/core/line.c text : old\n'
                'retired'))


right_tree = tempfile.TemporaryDirectory()
compiled(right_tree.name, RIGHT)
names = dict(globals())
with contextlib.suppress(BrokenPipeError):
    sys.exit(cases.run([case for name, case in names.items()
                        if name.startswith(('a_', 'an_', 'the_'))
                        and callable(case)]))
