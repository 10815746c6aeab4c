"""README.md, tried: readme.py ROOT COMMAND PROGRAM.

PROGRAM is its C, built. Its shell lines are run as they are, by COMMAND, but
for the host of Redis, which becomes our own; shared memory is
that of a directory of our own, too. That README.zh.md has the same lines is
checked by readmes.py.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

import cases
from redis_server import RedisServer
from snippet import snippets

root, command, program = (os.path.abspath(path) for path in sys.argv[1:4])
page = os.path.join(root, 'README.md')
install, shell, operators = snippets(page, 'sh')
lines = shell.splitlines()

# What stands for ./backup: says what it was given, and may wait for us.
BACKUP = '''#!/bin/sh
echo "$HOLDFAST_NAME $HOLDFAST_TOKEN"
[ ! -p gate ] || read -r line <gate
'''


locks = tempfile.TemporaryDirectory()
os.chmod(locks.name, 0o755)  # the other user's way to the group's locks
env = dict(os.environ)
env['HOLDFAST_URL'] = 'shm://' + locks.name + '/locks'
env['PATH'] = os.path.dirname(command) + ':' + env['PATH']
redis = RedisServer()


# Another user than the one that runs the test, in the same group.
STRANGER = ([] if os.geteuid() == 0 else ['sudo', '-n', '-E']) + [
    'setpriv', '--reuid', '65534', '--regid', '65534',
    '--groups', str(os.getgid())]


def start(line, directory, user=(), env=env):
    line = line.replace('redis://db1', 'redis+unix://' + redis.socket)
    line = line.replace('/run/app/locks', locks.name + '/group')
    line = line.replace('group=app', 'group=%d' % os.getgid())
    return subprocess.Popen([*user, 'sh', '-c', line], cwd=directory, env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            encoding='utf-8')


def run(line, directory, **how):
    process = start(line, directory, **how)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def workplace():
    directory = tempfile.TemporaryDirectory()
    path = os.path.join(directory.name, 'backup')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(BACKUP)
    os.chmod(path, 0o755)
    return directory


def c_program_gets_its_lock():
    done = subprocess.run([program], stdout=subprocess.PIPE, check=True,
                          encoding='utf-8', timeout=30)
    assert re.fullmatch(r'mine, token [1-9][0-9]*\n', done.stdout)


def each_shell_line_runs_its_command():
    with workplace() as directory:
        assert len(lines) == 7
        for line in lines:
            status, out, err = run(line.replace('sleep 5', 'true'), directory)
            assert status == 0, (line, err)
            if './backup' in line:
                assert re.fullmatch(r'[a-z ]+ [0-9 ]+\n', out), (line, out)
            else:
                assert re.search(r'[1-9][0-9]*\n', out), (line, out)


def while_it_runs(line, other, **how):
    """What the other line comes to while the first one holds the lock."""
    with Holder(line, env=how.get('env', env)) as first:
        told = run(other, '/', **how)
    assert first.process.returncode == 0
    return told


class Holder:
    """Holds what the line acquires until the end of the block."""

    def __init__(self, line, env=env):
        self.place = workplace()
        self.gate = os.path.join(self.place.name, 'gate')
        os.mkfifo(self.gate)
        self.process = start(line, self.place.name, env=env)
        self.token = self.process.stdout.readline().split()[1]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            with open(self.gate, 'w') as gate:
                gate.write('go\n')
        self.process.communicate(timeout=30)
        self.place.cleanup()


def says(line, wanted, statuses=(0,)):
    status, out, err = run(line, root)
    assert status in statuses, (line, status, out, err)
    assert re.search(wanted, out), (line, out, err)


def operators_lines_do_what_they_say():
    """In their order, while the first line of the shell holds the lock."""
    (list_all, show, watch, ask, take_away, latch_set, latch_down, latch_wait,
     doctor, bench) = operators.splitlines()
    with Holder(lines[0]) as holder:
        says(list_all, r'(?m)^nightly .*' + holder.token)
        says(show, '(?s)nightly.*' + holder.token)
        says(ask, '^$')
        watching = start('exec ' + watch, root)
        assert 'nightly' in watching.stdout.readline()
        # Not that of another holder.
        assert run(take_away, root)[0] == 1
        says(take_away.replace('34', holder.token), 'broken')
        assert 'nightly' in watching.stdout.readline()
        watching.terminate()
        watching.communicate(timeout=30)
        assert holder.process.wait(timeout=60) == 79
    assert run(ask, root)[0] == 1
    says(latch_set, '')
    for left in '2', '1', '0':
        says(latch_down, left)
    says(latch_wait, '')
    says(doctor, r'\bok\b', statuses=(0, 1))
    says(bench, '[1-9]')


def second_line_says_75_while_the_first_runs():
    told = while_it_runs(lines[0], lines[1])
    assert told[:2] == (75, ''), told


def no_wait(line):
    return line.replace(' run ', ' run -n ').replace('./backup', 'echo in')


def without_b_each_user_has_locks_of_its_own():
    without = {key: value for key, value in env.items()
               if key != 'HOLDFAST_URL'}
    line = lines[0].replace('nightly', 'readme-%d' % os.getpid())
    told = while_it_runs(line, no_wait(line), env=without)
    assert told[:2] == (75, ''), told
    theirs = '/dev/shm/holdfast-65534'
    was_there = os.path.exists(theirs)
    told = while_it_runs(line, no_wait(line), env=without, user=STRANGER)
    if not was_there:
        subprocess.run([*STRANGER, 'rm', '-r', theirs], check=True)
    assert told[:2] == (0, 'in\n'), told


def users_of_a_group_exclude_each_other():
    told = while_it_runs(lines[3], no_wait(lines[3]), user=STRANGER)
    assert told[:2] == (75, ''), told


def without_b_the_url_says_where_the_lock_is():
    with workplace() as directory:
        elsewhere = 'HOLDFAST_URL=redis+unix:///nowhere '
        status, _, err = run(elsewhere + lines[1], directory)
        assert status == 69 and 'HOLDFAST_URL' in err, (status, err)


def exit_statuses_are_those_of_the_command():
    usage = run('holdfast help run', root)[1]
    with open(page, encoding='utf-8') as f:
        text = f.read()
    assert re.findall(r'exit\s+status (\d+)', text) == ['75', '79']
    assert '75 not acquired, 79 lost' in usage
    assert '--on-lost warn' in text and '--on-lost kill|warn' in usage
    assert '--metrics FILE' in text and '--metrics FILE' in usage


def front_door_has_both_commands():
    done = subprocess.run([os.path.join(root, 'dev')], stdout=subprocess.PIPE,
                          check=True, encoding='utf-8')
    with open(page, encoding='utf-8') as f:
        text = f.read()
    for command in ('demo', 'test'):
        assert './dev ' + command in text
        assert re.search(r'^  %s\b' % command, done.stdout, re.MULTILINE)


def what_the_demo_suggests_exists():
    with open(os.path.join(root, 'dev'), encoding='utf-8') as f:
        verbs = re.findall(r'^  build/cli/holdfast (\w+)', f.read(),
                           re.MULTILINE)
    assert len(verbs) > 5, verbs
    for verb in set(verbs) - {'help'}:
        assert run('holdfast help ' + verb, root)[0] == 0, verb


def folders_of_backends():
    path = os.path.join(root, 'src', 'backends', 'list')
    with open(path, encoding='utf-8') as f:
        return [line.split()[0] for line in f if not line.startswith('#')]


VALUES = {'feature': ('enabled', 'disabled', 'auto'),
          'boolean': ('true', 'false'),
          'array': ('auto', 'all', 'none', *folders_of_backends())}
# Options that Meson itself has.
BUILT_IN = {'default_library': ('shared', 'static', 'both')}


def options_are_known_to_meson():
    with open(os.path.join(root, 'meson_options.txt'), encoding='utf-8') as f:
        known = dict(re.findall(r"option\('(\w+)', type: '(\w+)'", f.read()))
    text = ''
    for name in ('docs/install.md', 'README.md'):
        with open(os.path.join(root, name), encoding='utf-8') as f:
            text += f.read()
    shown = re.findall(r'^\| `-D(\w+)=', text, re.MULTILINE)
    assert sorted(shown) == sorted(known), (shown, known)
    with open(os.path.join(root, 'CONTRIBUTING.md'), encoding='utf-8') as f:
        text += f.read()
    assert '-Dtests=' in install
    assert [install] == snippets(os.path.join(root, 'docs/install.md'), 'sh')
    for name, value in re.findall(r'-D([a-z]\w*)=(\w+)', text):
        values = BUILT_IN.get(name) or VALUES[known[name]]
        assert value in values, (name, value)


def packages_are_those_of_the_backends():
    """Of the apt-get line, and of the table of docs/install.md."""
    apt, *_ = install.splitlines()
    assert apt.startswith('sudo apt-get install '), apt
    with open(os.path.join(root, 'src/backends/list'), encoding='utf-8') as f:
        modules = {name: (run.split(','), build.split(',')) for name, _, run, build
                   in (line.split() for line in f if not line.startswith('#'))
                   if run != '-'}
    build = {package for _, packages in modules.values() for package in packages}
    assert set(apt.split()[3:]) == build | {'meson', 'gcc', 'libc6-dev',
                                            'pkg-config'}, apt
    with open(os.path.join(root, 'docs/install.md'), encoding='utf-8') as f:
        rows = re.findall(r'^\| `(\w+)\.so`.*?\|.*?\|(.*?)\|(.*?)\|$', f.read(),
                          re.MULTILINE)
    shown = {name: (re.findall('`(.*?)`', run), re.findall('`(.*?)`', build))
             for name, build, run in rows}
    assert shown == modules, (shown, modules)


def a_backend_that_is_left_out_is_said():
    """As docs/install.md shows it, on a machine without hiredis."""
    with open(os.path.join(root, 'docs/install.md'), encoding='utf-8') as f:
        example = re.search(r'^    Backends\n((?:      .*\n)+)', f.read(),
                            re.MULTILINE)[1]
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            ['meson', 'setup', directory + '/build', root, '-Dtests=disabled',
             '-Dlab=disabled'], stdout=subprocess.PIPE, encoding='utf-8',
            env={**os.environ, 'PKG_CONFIG_LIBDIR': directory}, check=True)
    for line in example.splitlines():
        assert '\n    ' + line.strip() + '\n' in done.stdout, done.stdout


def every_function_has_a_manual_page():
    path = os.path.join(root, 'include', 'holdfast.h')
    with open(path, encoding='utf-8') as f:
        header = f.read()
    functions = set(re.findall(r'^HF_API [^;(]*?\*?(hf_\w+)\(', header,
                               re.MULTILINE | re.DOTALL))
    functions |= {'HF_SYNCHRONIZED'}
    assert len(functions) > 40
    described = set()
    for path in glob.glob(os.path.join(root, 'docs', 'man', '*.3')):
        with open(path, encoding='utf-8') as f:
            described |= set(re.findall(r'^\.Nm (\w+)', f.read(),
                                        re.MULTILINE))
    assert not functions - described, functions - described


def anchors(path):
    """Of the headings of a page, as GitHub makes them."""
    with open(path, encoding='utf-8') as f:
        found = re.findall(r'^#+ (.*)$', f.read(), re.MULTILINE)
    return {re.sub(r'[^\w -]', '', one.lower()).replace(' ', '-')
            for one in found}


def links_lead_somewhere():
    for path in (glob.glob(os.path.join(root, '*.md')) +
                 glob.glob(os.path.join(root, 'docs', '**', '*.md'),
                           recursive=True)):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        for link, anchor in re.findall(r'\]\(([^)#:]*)(?:#([^)]*))?\)', text):
            target = os.path.join(os.path.dirname(path), link)
            assert os.path.exists(target), (path, link)
            if anchor:
                assert anchor in anchors(target if link else path), (
                    path, link, anchor)


try:
    status = cases.run([
        c_program_gets_its_lock,
        each_shell_line_runs_its_command,
        operators_lines_do_what_they_say,
        second_line_says_75_while_the_first_runs,
        without_b_each_user_has_locks_of_its_own,
        users_of_a_group_exclude_each_other,
        without_b_the_url_says_where_the_lock_is,
        exit_statuses_are_those_of_the_command,
        front_door_has_both_commands,
        what_the_demo_suggests_exists,
        options_are_known_to_meson,
        packages_are_those_of_the_backends,
        a_backend_that_is_left_out_is_said,
        every_function_has_a_manual_page,
        links_lead_somewhere,
    ])
finally:
    redis.stop()
sys.exit(status)
