"""Tests what holdfast shows on a terminal: live.py HOLDFAST SOURCE_DIRECTORY"""

import os
import subprocess
import sys
import tempfile

from terminal import Terminal

sys.path.insert(1, os.path.join(sys.argv[2], 'tests', 'docs'))
import cases  # noqa: E402

HOLDFAST = os.path.abspath(sys.argv[1])
base = tempfile.TemporaryDirectory(prefix='holdfast-live.')
env = {**os.environ, 'HOLDFAST_URL': 'shm://%s/shm' % base.name, 'TERM': 'xterm'}
REMOVED = '\r\x1b[K'


def holdfast(*arguments, **more):
    return Terminal([HOLDFAST, *arguments], {**env, **more})


def run(*options, **more):
    return holdfast('run', *options, '--', 'echo', 'in', **more)


def ends_with(terminal, wanted, status=0):
    text, found = terminal.end()
    assert text.endswith(wanted) and found == status, (text, found)
    return text


def test_bench_shows_how_far_it_is_and_ends_at_control_c():
    with holdfast('bench', '--procs', '2', '--seconds', '1h') as terminal:
        found = terminal.wait_for(
            r'run 1 of 3: (\d+\.\d) s left, ([1-9]\d*) pairs')
        assert 0 < float(found[1]) <= 3600
        terminal.wait_for('\r\x1b\\[Krun 1 of 3: ')
        terminal.type('\x03')
        text, status = terminal.end()
        assert REMOVED + 'shm, fair mutex, 2 processes' in text, text
        assert ', interrupted\r\n' in text, text
        assert ' 0 violations\r\n' in text, text
        assert status == 130, status


def test_bench_leaves_only_the_result():
    with holdfast('bench', '--seconds', '0.3', '--runs', '2') as terminal:
        text, status = terminal.end()
        assert 'run 2 of 2: ' in text, text
        assert text.split(REMOVED)[-1].startswith('shm, fair mutex'), text
        assert status == 0, status


def test_no_live_line_on_a_dumb_terminal():
    with holdfast('bench', '--seconds', '0.3', '--runs', '1',
                  TERM='dumb') as terminal:
        text, status = terminal.end()
        assert text.startswith('shm, fair mutex'), text
        assert status == 0, status


def held(*options):
    """Holds a lock; returns the pid and a function that releases it."""
    process = subprocess.Popen(
        [HOLDFAST, 'hold', *options], env=env, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, encoding='utf-8')
    assert int(process.stdout.readline()) > 0

    def release():
        process.stdin.close()
        assert process.wait(30) == 0
    return process.pid, release


def test_run_shows_its_place_in_the_queue():
    pid, release = held('--label', 'the holder', 'nightly')
    with run('nightly') as terminal:
        terminal.wait_for(r'nightly: waiting; process %d on \S+ \(the holder\) '
                          r'has (just acquired it|held it for [1-9]\d*s)\r\n' % pid)
        terminal.wait_for(r'\r\x1b\[Knightly: waiting for \d+s, '
                          r'place 1 of 1; held by process %d' % pid)
        with holdfast('run', 'nightly', '--', 'echo', 'next') as second:
            second.wait_for('place 2 of 2')
            terminal.wait_for('place 1 of 2')
            release()
            ends_with(terminal, REMOVED + 'in\r\n')
            ends_with(second, REMOVED + 'next\r\n')


def test_run_shows_no_place_without_an_order():
    pid, release = held('--unfair', 'unfair')
    with run('--unfair', 'unfair') as terminal:
        found = terminal.wait_for(r'unfair: waiting for \d+s(.*); held by '
                                  r'process %d' % pid)
        assert found[1] == '', found[1]
        release()
        ends_with(terminal, REMOVED + 'in\r\n')


def test_run_names_the_lock_that_it_waits_for():
    pid, release = held('b')
    with run('-l', 'c', '-l', 'b', '-l', 'a') as terminal:
        terminal.wait_for(r'\x1b\[Kb: waiting for \d+s, place 1 of 1; '
                          r'held by process %d' % pid)
        release()
        ends_with(terminal, REMOVED + 'in\r\n')


def test_a_live_line_is_removed_when_a_signal_ends_the_wait():
    _, release = held('nightly')
    with run('nightly') as terminal:
        terminal.wait_for('place 1 of 1')
        terminal.type('\x03')
        assert 'in\r\n' not in ends_with(terminal, REMOVED, 130)
    release()


def test_quiet_run_shows_nothing():
    _, release = held('nightly')
    with run('-q', 'nightly') as quiet, run('nightly') as terminal:
        terminal.wait_for('place [12] of 2')
        release()
        assert quiet.end() == ('in\r\n', 0)
        ends_with(terminal, 'in\r\n')


def test_a_dumb_terminal_has_one_line():
    pid, release = held('nightly')
    with run('nightly', TERM='dumb') as terminal:
        terminal.wait_for(r'^holdfast run: nightly: waiting; process %d .*\r\n' %
                          pid)
        release()
        assert terminal.end() == ('in\r\n', 0)


def test_a_short_wait_is_silent():
    """Of twenty waits, at least one ends before the message is due."""
    for _ in range(20):
        _, release = held('short')
        with run('short') as terminal:
            release()
            text = ends_with(terminal, 'in\r\n')
            if text == 'in\r\n':
                return
    raise AssertionError(text)


def test_hold_says_how_it_ends():
    with holdfast('hold', 'kept') as terminal:
        terminal.wait_for(r'\d+\r\nholdfast hold: held; \^D or \^C releases it')
        terminal.type('\x04')
        ends_with(terminal, '')


sys.exit(cases.run(cases.of(globals())))
