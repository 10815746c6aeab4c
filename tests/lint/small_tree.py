"""A small tree that a tool of .ci accepts; one change must make the tool complain."""
import os
import subprocess
import sys
import tempfile


class SmallTree:
    def __init__(self, root, tool, files):
        """files: path -> content; a file without content is not written."""
        self.tool = os.path.join(root, '.ci', tool)
        self.files = files

    def check(self, name='', before='', after=''):
        """Replaces `before` in that file. Returns the tool's status and output."""
        with tempfile.TemporaryDirectory() as folder:
            for file, text in self.files.items():
                if file == name:
                    assert before in text, before
                    text = text.replace(before, after, 1)
                path = os.path.join(folder, file)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if text:
                    with open(path, 'w', encoding='utf-8') as f:
                        f.write(text)
            done = subprocess.run([sys.executable, '-B', self.tool, folder],
                                  check=False, encoding='utf-8',
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def finds(self, text, name, before, after):
        """With that change the tool must print one line, which contains the text."""
        status, out = self.check(name, before, after)
        assert status == 1 and out.count('\n') == 1 and text in out, out
