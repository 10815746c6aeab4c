"""Runs a program on a terminal of its own, and types and reads there."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

FOREVER = 30  # seconds


class Terminal:
    def __init__(self, argv, env=None, cwd=None, columns=100, lines=40):
        self.text = ''
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ,
                            struct.pack('HHHH', lines, columns, 0, 0))
                if cwd:
                    os.chdir(cwd)
                for number in (signal.SIGINT, signal.SIGPIPE):
                    signal.signal(number, signal.SIG_DFL)
                os.execvpe(argv[0], argv, env or os.environ)
            finally:
                os._exit(127)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self, seconds):
        """Reads more output. Returns False once the program has ended."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # on Linux: the last writer has ended
            return False
        self.text += data.decode(errors='surrogateescape')
        return bool(data)

    def wait_for(self, pattern):
        """Waits for output that matches, and drops everything up to the end of the match."""
        end = time.monotonic() + FOREVER
        while not (found := re.search(pattern, self.text)):
            left = end - time.monotonic()
            if left <= 0 or not self.read(left):
                raise AssertionError('%r was not printed, but %r' % (
                    pattern, self.text))
        self.text = self.text[found.end():]
        return found

    def end(self):
        """Returns the remaining output, and the exit status as a shell shows it."""
        end = time.monotonic() + FOREVER
        while self.read(max(0, end - time.monotonic())):
            assert time.monotonic() < end, self.text
        status = os.waitpid(self.pid, 0)[1]
        self.pid = 0
        return self.text, (128 + os.WTERMSIG(status)
                           if os.WIFSIGNALED(status)
                           else os.WEXITSTATUS(status))
