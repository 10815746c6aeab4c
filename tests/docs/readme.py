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
env = dict(os.environ)
env['HOLDFAST_URL'] = 'shm://' + locks.name + '/locks'
env['PATH'] = os.path.dirname(command) + ':' + env['PATH']
redis = RedisServer()


def start(line, directory):
    line = line.replace('redis://db1', 'redis+unix://' + redis.socket)
    return subprocess.Popen(['sh', '-c', line], cwd=directory, env=env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            encoding='utf-8')


def run(line, directory):
    process = start(line, directory)
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
        assert len(lines) == 3
        for line in lines:
            status, out, err = run(line, directory)
            assert status == 0, err
            assert re.fullmatch(r'nightly [1-9][0-9]*\n', out), out


def second_line_says_75_while_the_first_runs():
    with workplace() as directory:
        os.mkfifo(os.path.join(directory, 'gate'))
        first = start(lines[0], directory)
        assert first.stdout.readline().startswith('nightly ')
        status, out, _ = run(lines[1], directory)
        with open(os.path.join(directory, 'gate'), 'w') as gate:
            gate.write('go\n')
        first.communicate(timeout=30)
        assert first.returncode == 0
        assert (status, out) == (75, ''), (status, out)


def without_b_the_url_says_where_the_lock_is():
    with workplace() as directory:
        elsewhere = 'HOLDFAST_URL=redis+unix:///nowhere '
        status, _, err = run(elsewhere + lines[0], directory)
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


VALUES = {'feature': ('enabled', 'disabled', 'auto'),
          'boolean': ('true', 'false')}


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
        assert value in VALUES[known[name]], (name, value)


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
