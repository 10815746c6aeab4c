"""Tests README.md: readme.py ROOT COMMAND PROGRAM.

PROGRAM is the C code of the README, compiled. COMMAND runs the shell lines of the
README as they are, except that the host of Redis becomes a server of this test, and
shared memory is in a directory of this test. readmes.py checks that README.zh.md has
the same lines.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import cases
from servers import Redis
from snippet import snippets

root, command, program = (pathlib.Path(path).resolve()
                          for path in sys.argv[1:4])
page, install_page = root / 'README.md', root / 'docs/install.md'
install, shell, operators = snippets(page, 'sh')
lines = shell.splitlines()

# Takes the place of ./backup: prints the lock's name and its token, and may wait for the test.
BACKUP = '''#!/bin/sh
echo "$HOLDFAST_NAME $HOLDFAST_TOKEN"
[ ! -p gate ] || read -r line <gate
'''


locks = tempfile.TemporaryDirectory()
os.chmod(locks.name, 0o755)  # for the other user
env = dict(os.environ)
env['HOLDFAST_URL'] = 'shm://' + locks.name + '/locks'
env['PATH'] = '%s:%s' % (command.parent, env['PATH'])
redis = Redis()


# Prefix of commands that run as a user other than the test's, in the same group.
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
    backup = pathlib.Path(directory.name, 'backup')
    backup.write_text(BACKUP, 'utf-8')
    backup.chmod(0o755)
    return directory


def test_c_program_gets_its_lock():
    said = subprocess.check_output([program], encoding='utf-8', timeout=30)
    assert re.fullmatch(r'mine, token [1-9][0-9]*\n', said)


def test_each_shell_line_runs_its_command():
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
    """Runs the other line while the first line holds the lock. Returns its result."""
    with Holder(line, env=how.get('env', env)) as first:
        told = run(other, '/', **how)
    assert first.process.returncode == 0
    return told


class Holder:
    """Holds the lock of the line until the end of the block."""

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


def test_operators_lines_do_what_they_say():
    """Runs the lines in order while the first of the shell lines holds the lock."""
    (list_all, show, watch, ask, take_away, latch_set, latch_down, latch_wait,
     doctor, bench) = operators.splitlines()
    with Holder(lines[0]) as holder:
        says(list_all, r'(?m)^nightly .*' + holder.token)
        says(show, '(?s)nightly.*' + holder.token)
        says(ask, '^$')
        watching = start('exec ' + watch, root)
        assert 'nightly' in watching.stdout.readline()
        # The token in the line is not this holder's, so nothing may be broken.
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


def test_second_line_says_75_while_the_first_runs():
    told = while_it_runs(lines[0], lines[1])
    assert told[:2] == (75, ''), told


def no_wait(line):
    return line.replace(' run ', ' run -n ').replace('./backup', 'echo in')


def test_without_b_each_user_has_locks_of_its_own():
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


def test_users_of_a_group_exclude_each_other():
    told = while_it_runs(lines[3], no_wait(lines[3]), user=STRANGER)
    assert told[:2] == (75, ''), told


def test_without_b_the_url_says_where_the_lock_is():
    with workplace() as directory:
        elsewhere = 'HOLDFAST_URL=redis+unix:///nowhere '
        status, _, err = run(elsewhere + lines[1], directory)
        assert status == 69 and 'HOLDFAST_URL' in err, (status, err)


def test_exit_statuses_are_those_of_the_command():
    usage = run('holdfast help run', root)[1]
    text = page.read_text('utf-8')
    assert re.findall(r'exit\s+status (\d+)', text) == ['75', '79']
    assert '75 not acquired, 79 lost' in usage
    assert '--on-lost warn' in text and '--on-lost kill|warn' in usage
    assert '--metrics FILE' in text and '--metrics FILE' in usage


def test_front_door_has_both_commands():
    usage = subprocess.check_output([root / 'dev'], encoding='utf-8')
    for verb in ('demo', 'test'):
        assert './dev ' + verb in page.read_text('utf-8')
        assert re.search(r'^  %s\b' % verb, usage, re.MULTILINE)


def test_what_the_demo_suggests_exists():
    verbs = re.findall(r'^  build/cli/holdfast (\w+)',
                       (root / 'dev').read_text('utf-8'), re.MULTILINE)
    assert len(verbs) > 5, verbs
    for verb in set(verbs) - {'help'}:
        assert run('holdfast help ' + verb, root)[0] == 0, verb


# Each line has the folder, the schemes, the packages to run it and those to build it.
backends = [line.split()
            for line in (root / 'src/backends/list').open(encoding='utf-8')
            if not line.startswith('#')]
VALUES = {'feature': ('enabled', 'disabled', 'auto'),
          'boolean': ('true', 'false'),
          'array': ('auto', 'all', 'none', *(line[0] for line in backends))}
# These are options of Meson itself.
BUILT_IN = {'default_library': ('shared', 'static', 'both')}


def test_options_are_known_to_meson():
    known = dict(re.findall(r"option\('(\w+)', type: '(\w+)'",
                            (root / 'meson_options.txt').read_text('utf-8')))
    text = install_page.read_text('utf-8') + page.read_text('utf-8')
    shown = re.findall(r'^\| `-D(\w+)=', text, re.MULTILINE)
    assert sorted(shown) == sorted(known), (shown, known)
    text += (root / 'CONTRIBUTING.md').read_text('utf-8')
    assert '-Dtests=' in install
    assert [install] == snippets(install_page, 'sh')
    for name, value in re.findall(r'-D([a-z]\w*)=(\w+)', text):
        values = BUILT_IN.get(name) or VALUES[known[name]]
        assert value in values, (name, value)


def test_packages_are_those_of_the_backends():
    """Both the apt-get line and the table of docs/install.md list them."""
    apt, *_ = install.splitlines()
    assert apt.startswith('sudo apt-get install '), apt
    modules = {name: (run.split(','), build.split(','))
               for name, _, run, build in backends if run != '-'}
    build = {package for _, packages in modules.values() for package in packages}
    assert set(apt.split()[3:]) == build | {'meson', 'gcc', 'libc6-dev',
                                            'pkg-config'}, apt
    rows = re.findall(r'^\| `(\w+)\.so`.*?\|.*?\|(.*?)\|(.*?)\|$',
                      install_page.read_text('utf-8'), re.MULTILINE)
    shown = {name: (re.findall('`(.*?)`', run), re.findall('`(.*?)`', build))
             for name, build, run in rows}
    assert shown == modules, (shown, modules)


def test_a_backend_that_is_left_out_is_said():
    """docs/install.md shows what a machine without hiredis prints."""
    example = re.search(r'^    Backends\n((?:      .*\n)+)',
                        install_page.read_text('utf-8'), re.MULTILINE)[1]
    with tempfile.TemporaryDirectory() as directory:
        said = subprocess.check_output(
            ['meson', 'setup', directory + '/build', root, '-Dtests=disabled',
             '-Dlab=disabled'], encoding='utf-8',
            env={**os.environ, 'PKG_CONFIG_LIBDIR': directory})
    for line in example.splitlines():
        assert '\n    ' + line.strip() + '\n' in said, said


def test_every_function_has_a_manual_page():
    header = (root / 'include/holdfast.h').read_text('utf-8')
    functions = {'HF_SYNCHRONIZED', *re.findall(
        r'(?ms)^HF_API [^;(]*?\*?(hf_\w+)\(', header)}
    assert len(functions) > 40
    pages = ''.join(path.read_text('utf-8')
                    for path in (root / 'docs/man').glob('*.3'))
    described = set(re.findall(r'^\.Nm (\w+)', pages, re.MULTILINE))
    assert not functions - described, functions - described


def anchors(path):
    """Returns the anchors that GitHub creates for the headings of a page."""
    found = re.findall(r'^#+ (.*)$', path.read_text('utf-8'), re.MULTILINE)
    return {re.sub(r'[^\w -]', '', one.lower()).replace(' ', '-')
            for one in found}


def test_links_lead_somewhere():
    for path in *root.glob('*.md'), *root.glob('docs/**/*.md'):
        for link, anchor in re.findall(r'\]\(([^)#:]*)(?:#([^)]*))?\)',
                                       path.read_text('utf-8')):
            target = path.parent / link if link else path
            assert target.exists(), (path, link)
            assert not anchor or anchor in anchors(target), (path, link, anchor)


sys.exit(cases.run(cases.of(globals())))
