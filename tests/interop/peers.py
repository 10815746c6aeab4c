"""Servers that the tests start, and processes that lock with one library or another. A
process reads one command per line and answers each with one line:

  contend KIND NAME FILE TOTAL STAY_US LIMIT
              enters the region in FILE repeatedly, until all processes
              together have made TOTAL entries (see region.h)
                  done entered=N overlaps=N stale=N longest_us=N
  race KIND NAME THREADS MS [HANDOFF]
              locks and unlocks, for MS                  done pairs=N us=N
  turns KIND NAME MS HOLD_MS THINK_MS
              ours, redsync, node-redlock: as race, but sleeps for HOLD_MS with
              the lock and for THINK_MS without it
                                  done pairs=N us=N waits MICROSECONDS...
  hold KIND NAME LEASE_MS WAIT_MS [LIMIT]
              lease 0: renewed; wait -1: for ever
                                           held token=N waited_us=N, or busy
  drop        releases the lock                                    dropped
  check       ours: whether the lock is still held      HF_OK, HF_ELOST ...
  force - NAME    breaks the mutex                          forced, or free
  permits KIND NAME N
              Redisson: sets the size of a semaphore (ours: LIMIT)
                                                                set, or busy
  latch set NAME N | down NAME | get NAME | wait NAME MS
                          set, busy | down | count N | zero, timeout
  rounds NAME FILE ROUNDS STAY_US ME COUNT ALL
              counts a latch of COUNT down and waits for it, ROUNDS times, as
              process ME of COUNT. Three latches NAME-0, NAME-1, NAME-2 take
              turns; the first must be set. ALL processes use FILE.
                  done entered=N overlaps=N stale=0 longest_us=N
  caps KIND   ours: hf_client_caps                                  caps N
  forget      Redisson: makes one of its semaphores forget a waiter
                                                     woken, or forgotten

A command that fails is answered with "failed TEXT". Kinds: unfair, fair,
fenced, rwlock (one entry of four writes), read, write, semaphore, plain (a
semaphore without owners), latch.
"""

import contextlib
import ctypes
import os
import queue
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

PATIENCE_S = 100
JAVA = ['java', '-XX:+UseSerialGC', '-XX:-UsePerfData', '-Xmx256m']


class Failure(Exception):
    """A case did not observe what it should have observed."""


class Violation(Failure):
    """Two processes were inside at once, or a token did not exceed the one before."""


def exclude(condition, text):
    if not condition:
        raise Violation(text)


def check(condition, text):
    if not condition:
        raise Failure(text)


def stolen():
    """Returns the seconds that the host has taken from our processors."""
    with open('/proc/stat', encoding='ascii') as f:
        return int(f.readline().split()[8]) / os.sysconf('SC_CLK_TCK')


def stalled():
    """Returns for how many seconds since boot some process waited for a processor, as the
    kernel reports it, plus the seconds in which the host gave this machine no processor."""
    try:
        with open('/proc/pressure/cpu', encoding='ascii') as f:
            waited = int(re.search(r'total=(\d+)', f.readline())[1]) / 1e6
    except OSError:
        waited = 0
    return waited + stolen()


class Canary(threading.Thread):
    """Sleeps for short times, and adds up the delay whenever it wakes much too late. In that
    time the machine has stalled, which the kernel does not account for."""

    def __init__(self):
        super().__init__(daemon=True)
        self.stood_s = 0
        self.start()

    def run(self):
        nap_s, late_s = 0.01, 0.2
        while True:
            begin = time.monotonic()
            time.sleep(nap_s)
            late = time.monotonic() - begin - nap_s
            if late > late_s:
                self.stood_s += late


canary = Canary()


class Watch:
    """Measures a duration, both by the clock and without the time in which a process
    waited for a processor or the machine stalled."""

    def __init__(self):
        self.start, self.stalled = time.monotonic(), stalled()
        self.stood = canary.stood_s

    def stop(self):
        self.seconds = time.monotonic() - self.start
        self.fair_s = self.seconds - (stalled() - self.stalled) - \
            self.stood_s()
        return self

    def stood_s(self):
        time.sleep(0.05)  # so that the canary notes the latest stall
        return canary.stood_s - self.stood


def wait_until(what, condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, f'waited {seconds} s until {what}')
        time.sleep(0.002)


def numbers(answer):
    return {key: int(value)
            for key, value in re.findall(r'(\w+)=(-?\d+)', answer)}


def dies_with_us():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def reserve_port():
    """Returns a socket and its loopback port. The kernel gives the port to no other
    process while this socket, which does not listen, is open. A server with
    SO_REUSEADDR can bind it."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('127.0.0.1', 0))
    return s, s.getsockname()[1]


class Server:
    """A process that has its own directory and ports. A subclass starts the process, and
    defines answers(), which returns True once the process can be used."""

    def __init__(self, ports=1, folder=None):
        self.dir = tempfile.TemporaryDirectory(prefix='holdfast-interop.',
                                               dir=folder)
        reserved = [reserve_port() for _ in range(ports)]
        self.reserved, self.ports = zip(*reserved)
        self.port = self.ports[0]

    def start(self, command, seconds=10):
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=dies_with_us)
        wait_until(f'{command[0]} answers', self.is_ready, seconds)

    def is_ready(self):
        check(self.process.poll() is None, 'the server has ended')
        return self.answers()

    def end(self):
        self.process.kill()
        self.process.wait()
        for one in self.reserved:
            one.close()
        self.dir.cleanup()


class Peer:
    def __init__(self, side, command):
        self.side = side
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            encoding='utf-8', bufsize=1, preexec_fn=dies_with_us)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put(None)

    def tell(self, *command):
        self.process.stdin.write(' '.join(map(str, command)) + '\n')
        self.process.stdin.flush()

    def answer(self, seconds=PATIENCE_S):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise Failure(f'{self.side}: no answer in {seconds} s') from None
        check(line is not None, f'{self.side}: the process has ended')
        return line

    def has_answered(self):
        return not self.lines.empty()

    def ask(self, *command):
        self.tell(*command)
        return self.answer()

    def expect(self, begins, *command):
        """Sends the command, if one is given, and waits for an answer, which must begin with
        `begins'."""
        if command:
            self.tell(*command)
        answer = self.answer()
        exclude(begins != 'busy' or not answer.startswith('held'),
                f'{self.side}: {command}: {answer!r}, but another holds it')
        check(answer.startswith(begins),
              f'{self.side}: {command}: {answer!r} instead of {begins!r}')
        return numbers(answer)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        if self.process.poll() is None:
            self.kill()
        with contextlib.suppress(BrokenPipeError):  # unread commands
            self.process.stdin.close()
