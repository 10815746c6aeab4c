"""Tests the rules for Redis' ACLs in holdfast-url(7): acl.py ROOT COMMAND

The test gives the command of the manual to redis-cli as it is printed. With the
user that the command creates, every verb must work for every kind, and the
server must not deny anything. If any one of the rules is missing, `holdfast
doctor' must complain.
"""

import json
import os
import re
import subprocess
import sys
import time

import cases
import rules
from servers import Redis

root, command = (os.path.abspath(path) for path in sys.argv[1:3])
page = os.path.join(root, 'docs', 'man', 'holdfast-url.7')
whole, watching, braces = rules.of_redis(page)
KINDS = ([], ['--fair'], ['-x'], ['-x', '--fair'], ['--of', '1'],
         ['--of', '1', '--fair'])


def url(more=''):
    return 'redis+unix://locks:password@%s?prefix=lk:%s' % (server.socket, more)


processes = []


def start(*words, at=None):
    process = subprocess.Popen(
        [command, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, encoding='utf-8',
        env={**os.environ, 'HOLDFAST_URL': at or url()})
    processes.append(process)
    return process


def end(process, *want):
    out, err = process.communicate(timeout=60)
    assert process.returncode in (want or [0]), (process.args, process.returncode, out,
                                        err)
    assert 'NOPERM' not in err and 'polling' not in err, (process.args, err)
    return out


def run(*words, at=None, want=(0,)):
    return end(start(*words, at=at), *want)


def diagnose(at=None):
    return run('doctor', at=at, want=(0, 1, 2))


def acl(*words):
    answer = server.call('ACL', *words)
    assert answer == 'OK', (words, answer)


def make_user(*more, without=()):
    for process in processes:
        process.kill()
        process.communicate()
    processes.clear()
    server.call('ACL', 'DELUSER', 'locks')
    server.call('ACL', 'LOG', 'RESET')
    assert whole[:3] == ['ACL', 'SETUSER', 'locks']
    acl(*[rule for rule in whole[1:] if rule not in without], *more)


def nothing_was_denied():
    log = server.call('ACL', 'LOG')
    assert log == '', log


def state(name, at):
    return json.loads(run('show', '--json', name, at=at, want=(0, 1)))


TTL_S = 6  # of a hold that must be renewed; the other holds outlast any stall


def held(kind, name, at, renewed=False):
    holder = start('run', '-t', '%ds' % (TTL_S if renewed else 60), *kind, name,
                   '--', 'cat', at=at)
    cases.until(lambda: state(name, at)['holders'])
    return holder


def is_renewed(name, at):
    (holder,) = state(name, at)['holders']
    return time.time() * 1000 > holder['since_unix_ms'] + 1000 * TTL_S


def verbs(kind, name, at, renewed=False):
    """Uses every verb while a process holds the lock, and ends by breaking that hold."""
    holder = held(kind, name, at, renewed)
    run('run', '-n', *kind, name, '--', 'true', at=at, want=[75])
    waiter = start('run', *kind, name, '--', 'cat', at=at)
    cases.until(lambda: state(name, at)['waiters'])
    assert name in run('ls', at=at) and name in run('ls', '-l', at=at)
    cases.until(lambda: not renewed or is_renewed(name, at))
    if 'dialect=string' not in at:
        run('ask', name, at=at)
    end(holder)
    cases.until(lambda: [one['pid'] for one in state(name, at)['holders']] ==
          [waiter.pid])
    run('break', '-y', name, at=at)
    end(waiter, 79)
    run('run', '-n', '-l', name, '-l', name + '2', *kind, '--', 'true', at=at)


def every_kind_works(at, suffix='', renewed=False):
    for kind in KINDS:
        verbs(kind, 'n%s%s' % (''.join(kind), suffix), at, renewed)
    writer = held(['-x'], 'r' + suffix, at)
    reader = start('run', '-s', 'r' + suffix, '--', 'true', at=at)
    cases.until(lambda: state('r' + suffix, at)['waiters'])
    end(writer)
    end(reader)


def a_latch_works(at, name):
    run('latch', 'set', name, '2', at=at)
    assert run('latch', 'show', name, at=at) == '2\n'
    waiter = start('latch', 'wait', name, at=at)
    run('latch', 'down', name, at=at)
    run('latch', 'wait', '-w', '0', name, at=at, want=[75])
    run('break', '-y', name, at=at)
    end(waiter)


def test_every_verb_works():
    make_user()
    every_kind_works(url(), renewed=True)
    a_latch_works(url(), 'count')
    nothing_was_denied()


def test_dialect_string_needs_no_more():
    make_user()
    verbs([], 's', url('&dialect=string'), renewed=True)
    nothing_was_denied()


def test_names_with_braces():
    make_user(*braces)
    for name in 'a{b}', '{b}', 'c}{d':
        every_kind_works(url(), name)
        a_latch_works(url(), 'count' + name)
    nothing_was_denied()


def test_watching_without_polling():
    make_user(*watching)
    assert server.call('CONFIG', 'SET', 'notify-keyspace-events', 'KA') == 'OK'
    for words in ['w'], ['-p']:
        watch = start('watch', '-n', '1', '-i', '1h', *words)
        if words == ['w']:
            assert 'free' in watch.stdout.readline()
        # The third possibility is that the watch has already seen the hold and has ended.
        cases.until(lambda: '__keyspace@0__:lk:' in server.call(
            'PUBSUB', 'CHANNELS') or server.call('PUBSUB', 'NUMPAT') == '1' or
              watch.poll() is not None)
        holder = held([], 'w', url())
        end(watch)
        end(holder)
    nothing_was_denied()


def test_a_database_and_replicas():
    make_user('+select', '+wait')
    text = diagnose(url('&db=2&replicas=1'))
    assert 'the user locks has every right' in text, text
    server.call('ACL', 'LOG', 'RESET')
    run('run', 'd', '--', 'true', at=url('&db=2'))
    nothing_was_denied()
    for rule, more in ('+select', '&db=2'), ('+wait', '&replicas=1'):
        make_user('+select', '+wait', rule.replace('+', '-'))
        out = diagnose(url(more))
        assert rule in advice(out)[0], out


def test_the_doctor_has_all_that_it_asks_for():
    make_user('+info', '+config|get')
    out = diagnose()
    assert 'not known: allow' not in out, out
    nothing_was_denied()
    make_user()
    out = diagnose()
    assert 'allow +info' in out, out


def advice(text):
    return [line.split() for line in re.findall(
        r'Run in redis-cli: ACL SETUSER locks (.*)', text)]


def test_every_rule_is_needed():
    """The doctor can name a missing rule because it runs the scripts."""
    for rule in whole[5:]:
        make_user(without=[rule])
        if rule == 'resetchannels':
            continue  # in Redis 7 a new user has no channels anyway
        out = diagnose()
        found = advice(out)
        assert len(found) == 1 and rule in found[0], (rule, out)


def test_the_doctor_leads_to_the_rules_of_the_manual():
    """Follows the doctor's advice until the doctor gives none."""
    server.call('ACL', 'DELUSER', 'locks')
    acl(*whole[1:5], 'resetchannels')
    given = set()
    while True:
        out = diagnose()
        found = advice(out)
        if not found:
            break
        for line in found:
            acl('SETUSER', 'locks', *line)
            given.update(line)
    assert given == set(whole[5:]) - {'resetchannels'}, (
        given ^ set(whole[5:]))
    assert 'the user locks has every right' in out, out


def test_a_prefix_as_it_comes():
    """The prefixes have braces, a blank, and characters that are special in patterns."""
    for prefix in '{shop}:', 'a b', '*[x]', '', 'ä"':
        server.call('ACL', 'DELUSER', 'locks')
        acl(*whole[1:5], 'resetchannels')
        at = url().replace('lk:', ''.join('%%%02x' % b for b in prefix.encode()))
        for _ in range(2):
            for line in advice(diagnose(at)):
                acl('SETUSER', 'locks', *line)
        server.call('ACL', 'LOG', 'RESET')
        verbs(['--fair'], 'n', at)
        a_latch_works(at, 'count')
        nothing_was_denied()


server = Redis()
sys.exit(cases.run(cases.of(globals(), sys.argv[3:])))
