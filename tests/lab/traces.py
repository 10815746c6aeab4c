"""What a run of the lab would leave behind: files below its TMPDIR, and
processes that have that directory on their command line."""

import os
import shutil
import tempfile
import time


class Place:
    """A directory in which a run puts what is temporary."""

    def __enter__(self):
        # Short: a server's socket is below it.
        self.path = tempfile.mkdtemp(prefix='lab-', dir='/tmp')
        self.environment = dict(os.environ, TMPDIR=self.path)
        self.environment.pop('HOLDFAST_URL', None)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open('/proc/%s/cmdline' % pid, 'rb') as file:
                    if self.path.encode() in file.read():
                        found.append(int(pid))
            except OSError:
                pass  # it is gone
        return found

    def is_clean(self):
        left = os.listdir(self.path), self.processes()
        if any(left):
            print('# left: %s %s' % left)
        return not any(left)

    def becomes_clean(self):
        """For those who are killed: their keepers take a moment."""
        return wait_for(lambda: not os.listdir(self.path)
                        and not self.processes()) or self.is_clean()


def wait_for(condition, seconds=120):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
