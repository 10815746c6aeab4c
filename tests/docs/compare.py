"""Tests the comparison in README.md: compare.py ROOT COMMAND, with ETCD_URL.

The test reproduces what the comparison claims of flock(1), of SET NX by hand and of
`etcdctl lock'. Where holdfast behaves differently, the test also runs `holdfast run'. For the
other columns the README names tests and pages; this test checks that they exist.
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
etcd = os.environ['ETCD_URL']
endpoint = re.match(r'etcd://([^/?]+)', etcd)[1]
work = tempfile.TemporaryDirectory()
redis = Redis()


def path(name):
    return os.path.join(work.name, name)


def read(name):
    if not os.path.exists(path(name)):
        return ''
    with open(path(name), encoding='utf-8') as f:
        return f.read()


def script(name, text):
    """Creates an executable script that runs in our directory."""
    with open(path(name), 'w', encoding='utf-8') as f:
        f.write('#!/bin/sh\ncd %s\n%s\n' % (work.name, text))
    os.chmod(path(name), 0o755)
    return path(name)


def start(*words):
    return subprocess.Popen(words, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=dict(os.environ, ETCDCTL_API='3'),
                            start_new_session=True, encoding='utf-8')


def run(*words):
    process = start(*words)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def kill_all(process):
    """Kills a process and all processes that it has started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_flock_excludes_and_has_readers():
    lock, held = path('flock'), script('hold-flock', 'echo in\nsleep 60')
    holder = start('flock', lock, held)
    assert holder.stdout.readline() == 'in\n'
    assert run('flock', '-n', lock, 'true')[0] == 1
    # After a kill the lock is free at once.
    kill_all(holder)
    assert run('flock', '-n', lock, 'true')[0] == 0
    reader = start('flock', '-s', lock, held)
    assert reader.stdout.readline() == 'in\n'
    assert run('flock', '-n', '-s', lock, 'true')[0] == 0
    assert run('flock', '-n', '-x', lock, 'true')[0] == 1
    kill_all(reader)


def test_flock_gives_no_token():
    def names(*words):
        return {line.split('=')[0] for line in run(*words)[1].splitlines()}

    assert names('flock', path('flock'), 'env') == names('env')
    ours = names(command, 'run', '-b', 'shm://' + path('locks'), 'a', '--',
                 'env')
    assert ours > names('env') and 'HOLDFAST_TOKEN' in ours


def test_set_nx_without_expiry_stays_for_ever():
    assert redis.call('SET', 'plain', 'me', 'NX') == 'OK'
    assert redis.call('TTL', 'plain') == '-1'
    assert redis.call('SET', 'plain', 'you', 'NX') == ''


def test_set_nx_holder_is_not_told_and_frees_the_lock_of_another():
    assert redis.call('SET', 'lease', 'me', 'NX', 'PX', '50') == 'OK'
    cases.until(lambda: redis.call('SET', 'lease', 'you', 'NX') == 'OK')
    # The first holder continues, and releases the lock as if it still held it.
    assert redis.call('SET', 'stock', 'of a late holder') == 'OK'
    assert redis.call('DEL', 'lease') == '1'
    assert redis.call('SET', 'lease', 'third', 'NX') == 'OK'


def etcdctl(*words):
    return ['etcdctl', '--endpoints=' + endpoint, *words]


def leases():
    return set(run(*etcdctl('lease', 'list'))[1].splitlines()[1:])


def test_etcdctl_gives_a_token():
    show = script('show', 'echo $ETCD_LOCK_REV')
    first, second = (int(run(*etcdctl('lock', 'token', show))[1])
                     for _ in range(2))
    assert 0 < first < second, (first, second)


def test_etcdctl_lets_the_command_go_on_when_the_lock_is_lost():
    before = leases()
    holder = start(*etcdctl('lock', 'lost', script(
        'go-on', 'echo in\nuntil [ -e second ]; do sleep 0.05; done\n'
        'echo still here >late')))
    assert holder.stdout.readline() == 'in\n'
    (lease,) = leases() - before
    assert run(*etcdctl('lease', 'revoke', lease))[0] == 0
    assert run(*etcdctl('lock', 'lost', script('second-in',
                                               'touch second')))[0] == 0
    cases.until(lambda: read('late') == 'still here\n')
    holder.communicate(timeout=60)


def test_holdfast_ends_the_command_when_the_lock_is_lost():
    before = leases()
    holder = start(command, 'run', '-b', etcd, 'lost-by-us', '--',
                   script('wait', 'echo in\nexec sleep 600'))
    assert holder.stdout.readline() == 'in\n'
    (lease,) = leases() - before
    assert run(*etcdctl('lease', 'revoke', lease))[0] == 0
    assert holder.wait(timeout=60) == 79, holder.communicate()
    holder.communicate()


def test_etcdctl_frees_the_lock_when_the_lease_ends_first_come_first_served():
    def keys():
        return run(*etcdctl('get', '--prefix', 'queue/', '--keys-only'))[
            1].split()

    holder = start(*etcdctl('lock', '--ttl', '3', 'queue',
                            script('hold-etcd', 'echo in\nsleep 600')))
    assert holder.stdout.readline() == 'in\n'
    waiters = []
    for name in 'one', 'two':
        waiters.append(start(*etcdctl('lock', 'queue', script(
            name, 'echo %s >>order' % name))))
        cases.until(lambda: len(keys()) == 1 + len(waiters))
    assert read('order') == ''
    kill_all(holder)
    for waiter in waiters:
        waiter.communicate(timeout=60)
        assert waiter.returncode == 0
    assert read('order') == 'one\ntwo\n'


def test_neither_has_a_semaphore_and_etcdctl_has_no_readers():
    assert not re.search('semaphore|permit', run('flock', '--help')[1])
    out = run('etcdctl', 'lock', '--help')[1]
    options = re.search(r'(?s)\nOPTIONS:\n(.*?)\n\n', out)[1]
    assert re.findall(r'--(\w+)', options) == ['help', 'ttl'], options


def test_what_the_page_names_exists():
    with open(os.path.join(root, 'README.md'), encoding='utf-8') as f:
        page = f.read()
    section = re.search(r'(?s)\n## Compared with.*?(?=\n## )', page)[0]
    rows = re.findall(r'^\|(.*)\|$', section, re.MULTILINE)
    heads = [cell.strip() for cell in rows[0].split('|')]
    assert len(heads) == 8, heads
    for row in rows[2:]:
        cells = [cell.strip() for cell in re.split(r'(?<!\\)\|', row)]
        assert len(cells) == len(heads) and all(cells), row
    # The page names its evidence for each column.
    known = re.findall(r'^- \*\*(.*?)\*\*: ', section, re.MULTILINE)
    assert ', '.join(known).split(', ') == heads[1:], (known, heads)
    scenarios = os.listdir(os.path.join(root, 'lab', 'scenarios'))
    (named,) = re.findall(r'scenarios\s+((?:`[a-z-]+`(?:,| and)?\s*)+)',
                          section)
    for one in re.findall(r'`([a-z-]+)`', named):
        assert one.replace('-', '_') + '.c' in scenarios, one
    # The names are titles of cases in tests/interop.
    interop = ''
    for path in glob.glob(os.path.join(root, 'tests', 'interop', '*.py')):
        with open(path, encoding='utf-8') as f:
            interop += f.read()
    titles = re.findall(r'"([a-z]+:[^"]*)"', re.sub(r'\s+', ' ', section))
    assert len(titles) == 3, titles
    for title in titles:
        assert (title in interop or
                title.replace(': redisson ', ': {} ') in interop), title


sys.exit(cases.run(cases.of(globals())))
