"""Finds what a run of the lab may have left behind: files below its TMPDIR, and processes
that have that directory on their command line or as working directory.
"""

import os
import shutil
import tempfile
import time


class Place:
    """A directory for the temporary files of a run."""

    def __enter__(self):
        # The path is short, because a server's socket is below it.
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
                    said = file.read().decode(errors='replace')
                # Redis replaces its command line by a title, but works in the directory.
                if self.path in said + os.readlink('/proc/%s/cwd' % pid):
                    found.append(int(pid))
            except OSError:
                pass  # it has ended
        return found

    def is_clean(self):
        left = os.listdir(self.path), self.processes()
        if any(left):
            print('# left: %s %s' % left)
        return not any(left)

    def becomes_clean(self):
        """Waits until the run has left nothing behind: the cleanup processes of a killed run
        need a moment."""
        return wait_for(lambda: not os.listdir(self.path)
                        and not self.processes()) or self.is_clean()


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
