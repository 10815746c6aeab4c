"""Runs the EXAMPLES of the command's manual: manual_examples.py ROOT COMMAND

Consecutive .Dl lines are one script, for bash if the text before them says so, else for sh.
In holdfast-run(1) and holdfast-hold(1) a script runs as a whole, elsewhere line by line. The
test replaces three things in an example: hosts by its own servers (ZK_URL, ETCD_URL, or shared
memory if the variable is not set), directories by its own, and each command that runs under a
lock by one that prints its name. An example must succeed, but the doctor may warn. Where a
verb asks about `nightly', a process holds that lock.
"""

import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

import cases
from servers import Redis

root, command = (os.path.abspath(path) for path in sys.argv[1:3])
sys.path.insert(1, os.path.join(root, 'tests', 'cli'))
from terminal import Terminal  # noqa: E402

work = tempfile.TemporaryDirectory(prefix='holdfast-manual.')
redis = Redis()
SHM = 'shm://' + work.name + '/locks'
STUBS = ('backup', 'report', 'search', 'rebuild', 'download', 'switch-over')

os.mkdir(work.name + '/bin')
for stub in STUBS:
    path = os.path.join(work.name, 'bin', stub)
    with open(path, 'w', encoding='utf-8') as f:
        f.write('#!/bin/sh\necho "%s ran $*"\n' % stub)
    os.chmod(path, 0o755)
with open(work.name + '/zk', 'w', encoding='utf-8') as f:
    f.write('secret\n')
os.symlink(command, work.name + '/bin/holdfast')
env = {**os.environ, 'HOLDFAST_URL': SHM, 'TERM': 'xterm',
       'PATH': work.name + '/bin:' + os.environ['PATH']}

SERVERS = (
    (r'redis://(db1|localhost)', 'redis+unix://' + redis.socket),
    (r'zk://me@zk1,zk2,zk3(/\w+)?',
     os.environ.get('ZK_URL', SHM).replace('zk://', 'zk://me@') + '/me'),
    (r'zk://zk1,zk2,zk3(/\w+)?', os.environ.get('ZK_URL', SHM)),
    (r'etcd://(e1,e2,e3|localhost)(/\w+)?', os.environ.get('ETCD_URL', SHM)),
)
PLACES = (
    ('/run/app/locks', work.name + '/group'),
    ('group=app', 'group=%d' % os.getgid()),
    ('/etc/zk', work.name + '/zk'),
    ('/usr/local/bin/', ''),
    ('./switch-over', 'switch-over'),
    ('/var/lib/node_exporter', work.name),
)


def here(line):
    """Returns an example with the servers and directories of this machine."""
    for pattern, url in SERVERS:
        line = re.sub(pattern, lambda _, url=url: url, line)
    for before, after in PLACES:
        line = line.replace(before, after)
    return re.sub(r'(holdfast bench(?!.*--seconds).*)', r'\1 --seconds 0.1',
                  re.sub(r'--seconds \d+', '--seconds 0.1', line))


def examples(page):
    """Returns pairs: the text before a script, and the lines of the script."""
    with open(page, encoding='utf-8') as f:
        found = re.search(r'^\.Sh EXAMPLES\n(.*?)^\.Sh ', f.read(),
                          re.MULTILINE | re.DOTALL)
    text, lines, said = '', [], []
    for line in found[1].splitlines() + ['.Pp'] if found else []:
        if line.startswith('.Dl '):
            # mdoc would not print these characters as they are.
            assert not re.search(r'"|(^|\s)[\[(]\s', line), line
            lines.append(line[4:].replace('\\&', '').replace('\\e', '\\'))
        elif lines:
            said.append((text, lines))
            text, lines = line, []
        else:
            text += line
    return said


def run(line, shell='sh', more=None):
    with tempfile.TemporaryDirectory(dir=work.name) as directory:
        done = subprocess.run([shell, '-eu', '-c', line], cwd=directory,
                              env={**env, **(more or {})}, timeout=60,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              stdout=subprocess.PIPE, encoding='utf-8',
                              check=False)
    return done.returncode, done.stdout, done.stderr


class Held:
    """Holds `nightly' and `jobs/nightly' on the backend that the line uses."""

    def __init__(self, line):
        url = re.search(r"-b (\S+)", line)
        self.process = subprocess.Popen(
            ['holdfast', 'hold', '-b', url[1] if url else SHM, '-t', '5s',
             '-l', 'nightly', '-l', 'jobs/nightly'], env=env, stdin=subprocess.PIPE, encoding='utf-8',
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def __enter__(self):
        self.token = self.process.stdout.readline().strip()
        assert int(self.token) > 0
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(60)


def script_runs(text, lines):
    shell = 'bash' if 'In bash' in text else 'sh'
    status, out, err = run('\n'.join(map(here, lines)), shell)
    assert status == 0, (lines, out, err)
    wanted = re.findall('|'.join(STUBS), ' '.join(
        re.sub(r'.* -- ', '', line) for line in lines
        if re.search(r' -- |^(%s)' % '|'.join(STUBS), line)))
    assert wanted, lines
    for stub in wanted:
        assert stub + ' ran' in out, (lines, out)
    if 'holdfast hold' in ' '.join(lines):
        assert re.search(r'^backup ran [1-9]\d*$', out, re.MULTILINE), out


def asks_on_a_terminal(line):
    with Held(line) as held, Terminal(['sh', '-c', line], env) as terminal:
        terminal.wait_for(r'\[y/N\]')
        terminal.type('y\n')
        assert terminal.end()[1] == 0
        assert held.process.wait(60) == 79


def watches(line):
    """The watch must show a change; with -n it then ends, else it needs a signal."""
    watch = subprocess.Popen(['sh', '-c', 'exec ' + line], env=env,
                             stdout=subprocess.PIPE, encoding='utf-8')
    with Held(line):
        said = watch.stdout.readline()
    if ' -n 1' not in line:
        watch.send_signal(signal.SIGINT)
    watch.stdout.close()
    watch.wait(60)
    assert said, line


def asks_about(line):
    with Held(line) as held:
        status, out, err = run(line.replace('--token 12',
                                            '--token ' + held.token))
        assert status == 0, (line, out, err)
        if line.split()[1] in ('ls', 'show'):
            assert 'nightly' in out, (line, out, err)


def line_runs(line):
    verb = line.split()[1]
    if verb == 'break' and '--' not in line:
        asks_on_a_terminal(line)
    elif verb == 'watch':
        watches(line)
    elif verb in ('show', 'break', 'ask', 'ls'):
        asks_about(line)
    else:
        if 'latch wait' in line:  # the lines before set 3 and count one down
            for _ in range(2):
                run('holdfast latch down rollout')
        status, out, err = run(line)
        # The doctor may find a reason to warn.
        assert status == 0 or (verb == 'doctor' and status == 1), \
            (line, status, out, err)


def case(page):
    name = os.path.basename(page)[:-2]
    scripts = examples(page)

    def examples_run():
        for text, lines in scripts:
            if name in ('holdfast-run', 'holdfast-hold'):
                script_runs(text, lines)
            else:
                for line in lines:
                    line_runs(here(line))
    examples_run.__name__ = 'examples of ' + name
    return examples_run if scripts else None


pages = sorted(glob.glob(os.path.join(root, 'docs', 'man', 'holdfast*.1')))
found = [one for one in map(case, pages) if one]
assert len(found) > 5
sys.exit(cases.run(found))
