"""README.md, tried: readme.py ROOT COMMAND PROGRAM.

PROGRAM is its C, built. Its shell lines are run as they are, by COMMAND, but
for the host of the Redis server, which becomes one of our own; shared memory
is that of a directory of our own, too.
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
shell, install = snippets(page, 'sh')
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
        assert len(lines) == 4
        for line in lines:
            status, out, err = run(line, directory)
            assert status == 0, err
            assert re.fullmatch(r'nightly [1-9][0-9]*\n', out), out


def while_it_runs(line, other, **how):
    """What the other line comes to while the first one holds the lock."""
    with workplace() as directory:
        os.mkfifo(os.path.join(directory, 'gate'))
        first = start(line, directory, env=how.get('env', env))
        assert first.stdout.readline() != ''
        status, out, err = run(other, '/', **how)
        with open(os.path.join(directory, 'gate'), 'w') as gate:
            gate.write('go\n')
        first.communicate(timeout=30)
        assert first.returncode == 0
        return status, out, err


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


def front_door_has_both_commands():
    done = subprocess.run([os.path.join(root, 'dev')], stdout=subprocess.PIPE,
                          check=True, encoding='utf-8')
    with open(page, encoding='utf-8') as f:
        text = f.read()
    for command in ('demo', 'test'):
        assert './dev ' + command in text
        assert re.search(r'^  %s\b' % command, done.stdout, re.MULTILINE)


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
    with open(page, encoding='utf-8') as f:
        text = f.read()
    shown = re.findall(r'^\| `-D(\w+)=', text, re.MULTILINE)
    assert sorted(shown) == sorted(known), (shown, known)
    with open(os.path.join(root, 'docs', 'hacking.md'), encoding='utf-8') as f:
        text += f.read()
    assert '-Dtests=' in install
    for name, value in re.findall(r'-D([a-z]\w*)=(\w+)', text):
        values = BUILT_IN.get(name) or VALUES[known[name]]
        assert value in values, (name, value)


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


def links_lead_somewhere():
    for path in [page] + glob.glob(os.path.join(root, 'docs', '*.md')):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        for link in re.findall(r'\]\(([^)#:]+)(?:#[^)]*)?\)', text):
            target = os.path.join(os.path.dirname(path), link)
            assert os.path.exists(target), (path, link)


try:
    status = cases.run([
        c_program_gets_its_lock,
        each_shell_line_runs_its_command,
        second_line_says_75_while_the_first_runs,
        without_b_each_user_has_locks_of_its_own,
        users_of_a_group_exclude_each_other,
        without_b_the_url_says_where_the_lock_is,
        exit_statuses_are_those_of_the_command,
        front_door_has_both_commands,
        options_are_known_to_meson,
        every_function_has_a_manual_page,
        links_lead_somewhere,
    ])
finally:
    redis.stop()
sys.exit(status)
