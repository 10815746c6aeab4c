"""What holdfast shows on a terminal: live.py HOLDFAST SOURCE_DIRECTORY"""

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


def bench_shows_how_far_it_is_and_ends_at_control_c():
    with Terminal([HOLDFAST, 'bench', '--procs', '2', '--seconds', '1h'],
                  env) as terminal:
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


def bench_leaves_only_the_result():
    with Terminal([HOLDFAST, 'bench', '--seconds', '0.3', '--runs', '2'],
                  env) as terminal:
        text, status = terminal.end()
        assert 'run 2 of 2: ' in text, text
        assert text.split(REMOVED)[-1].startswith('shm, fair mutex'), text
        assert status == 0, status


def no_live_line_on_a_dumb_terminal():
    with Terminal([HOLDFAST, 'bench', '--seconds', '0.3', '--runs', '1'],
                  {**env, 'TERM': 'dumb'}) as terminal:
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


def run_shows_its_place_in_the_queue():
    pid, release = held('--label', 'the holder', 'nightly')
    with Terminal([HOLDFAST, 'run', 'nightly', '--', 'echo', 'in'],
                  env) as terminal:
        terminal.wait_for(r'nightly: waiting; process %d on \S+ \(the holder\) '
                          r'has (just acquired it|held it for [1-9]\d*s)\r\n' % pid)
        terminal.wait_for(r'\r\x1b\[Knightly: waiting for \d+s, '
                          r'place 1 of 1; held by process %d' % pid)
        with Terminal([HOLDFAST, 'run', 'nightly', '--', 'echo', 'next'],
                      env) as second:
            second.wait_for('place 2 of 2')
            terminal.wait_for('place 1 of 2')
            release()
            text, status = terminal.end()
            assert text.endswith(REMOVED + 'in\r\n'), text
            assert status == 0, status
            text, status = second.end()
            assert text.endswith(REMOVED + 'next\r\n'), text
            assert status == 0, status


def run_shows_no_place_without_an_order():
    pid, release = held('--unfair', 'unfair')
    with Terminal([HOLDFAST, 'run', '--unfair', 'unfair', '--', 'echo', 'in'],
                  env) as terminal:
        found = terminal.wait_for(r'unfair: waiting for \d+s(.*); held by '
                                  r'process %d' % pid)
        assert found[1] == '', found[1]
        release()
        text, status = terminal.end()
        assert text.endswith(REMOVED + 'in\r\n'), text
        assert status == 0, status


def run_names_the_lock_that_it_waits_for():
    pid, release = held('b')
    with Terminal([HOLDFAST, 'run', '-l', 'c', '-l', 'b', '-l', 'a', '--',
                   'echo', 'in'], env) as terminal:
        terminal.wait_for(r'\x1b\[Kb: waiting for \d+s, place 1 of 1; '
                          r'held by process %d' % pid)
        release()
        text, status = terminal.end()
        assert text.endswith(REMOVED + 'in\r\n') and status == 0, text


def a_live_line_is_removed_when_a_signal_ends_the_wait():
    pid, release = held('nightly')
    with Terminal([HOLDFAST, 'run', 'nightly', '--', 'echo', 'in'],
                  env) as terminal:
        terminal.wait_for('place 1 of 1')
        terminal.type('\x03')
        text, status = terminal.end()
        assert text.endswith(REMOVED) and 'in\r\n' not in text, text
        assert status == 130, status
    release()


def quiet_run_shows_nothing():
    pid, release = held('nightly')
    with Terminal([HOLDFAST, 'run', '-q', 'nightly', '--', 'echo', 'in'],
                  env) as quiet, \
            Terminal([HOLDFAST, 'run', 'nightly', '--', 'true'],
                     env) as terminal:
        terminal.wait_for('place [12] of 2')
        release()
        assert quiet.end() == ('in\r\n', 0)
        assert terminal.end()[1] == 0


def a_dumb_terminal_has_one_line():
    pid, release = held('nightly')
    with Terminal([HOLDFAST, 'run', 'nightly', '--', 'echo', 'in'],
                  {**env, 'TERM': 'dumb'}) as terminal:
        terminal.wait_for(r'^holdfast run: nightly: waiting; process %d .*\r\n' %
                          pid)
        release()
        assert terminal.end() == ('in\r\n', 0)


def a_short_wait_is_silent():
    """At least one wait of twenty ends before the message is due."""
    for _ in range(20):
        pid, release = held('short')
        with Terminal([HOLDFAST, 'run', 'short', '--', 'echo', 'in'],
                      env) as terminal:
            release()
            text, status = terminal.end()
            assert status == 0, status
            if text == 'in\r\n':
                return
    raise AssertionError(text)


def hold_says_how_it_ends():
    with Terminal([HOLDFAST, 'hold', 'kept'], env) as terminal:
        terminal.wait_for(r'\d+\r\nholdfast hold: held; \^D or \^C releases it')
        terminal.type('\x04')
        _, status = terminal.end()
        assert status == 0, status


sys.exit(cases.run([hold_says_how_it_ends,
                    run_shows_its_place_in_the_queue,
                    run_shows_no_place_without_an_order,
                    run_names_the_lock_that_it_waits_for,
                    a_live_line_is_removed_when_a_signal_ends_the_wait,
                    quiet_run_shows_nothing,
                    a_dumb_terminal_has_one_line,
                    a_short_wait_is_silent,
                    bench_shows_how_far_it_is_and_ends_at_control_c,
                    bench_leaves_only_the_result,
                    no_live_line_on_a_dumb_terminal]))
