"""The parts of operator_cases.sh that need Python.

  operator.py answer TEXT COMMAND...   runs COMMAND on a terminal of its own,
                                       answers its question with TEXT (-: with a
                                       line of standard input), prints its
                                       output, and exits with its status
  operator.py names HOLDFAST           tests names with every kind of byte
"""
import json
import os
import pty
import re
import select
import subprocess
import sys

PATIENCE_S = 60


def read_some(fd):
    """Returns the next output of the terminal, or b'' at the end."""
    assert select.select([fd], [], [], PATIENCE_S)[0], 'it says nothing'
    try:
        return os.read(fd, 65536)
    except OSError:
        return b''


def answer(text, command):
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    said = b''
    while b'[y/N] ' not in said:
        some = read_some(fd)
        assert some, said
        said += some
    print(said.decode(), flush=True)
    line = sys.stdin.readline() if text == '-' else text + '\n'
    os.write(fd, line.encode())
    while some := read_some(fd):
        print(some.decode().replace('\r', ''), end='', flush=True)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


NAMES = [
    bytes(range(1, 256)),
    'Schlüssel 锁 🔒'.encode(),
    b'back\\slash \\x41',
    b'a\nb\tc\x1b[31m',
    b' space ',
    b'-b',
    b'"quoted" \'so\'',
    b'100% {a} [b] *?',
    b'a//b/./../c',
    b'..',
    b'\xff\xfe',
    b'\xc2\x9b',
    b'x' * 512,
]


def shown(line):
    """Returns the bytes of a name from the output of ls."""
    return re.sub(rb'\\x([0-9a-f]{2})', lambda m: bytes.fromhex(m[1].decode()),
                  line)


def of_json(data):
    """Returns the name in a JSON object that the command printed."""
    one = json.loads(data)
    if 'name_hex' in one:
        return bytes.fromhex(one['name_hex'])
    return one['name'].encode()


def output(*command, status=0):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    assert done.returncode == status, (command, done.returncode)
    return done.stdout


def try_name(holdfast, name):
    with subprocess.Popen([holdfast, 'run', '--', name, '--', 'sh', '-c',
                           'echo held; cat'], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as holder:
        assert holder.stdout.readline() == b'held\n'
        assert name in output(holdfast, 'ls', '-0').split(b'\0')
        lines = output(holdfast, 'ls', '--', name).split(b'\n')
        assert name in map(shown, lines), lines
        assert all(byte >= 0x20 for line in lines for byte in line), lines
        assert name in map(of_json,
                           output(holdfast, 'ls', '--json', '--', name)
                           .splitlines())
        lines = output(holdfast, 'ls', '-l', '--no-headers', '--', name)
        assert any(shown(line).startswith(name + b'   ')
                   for line in lines.splitlines()), lines
        assert of_json(output(holdfast, 'show', '--json', '--', name)) == name
        assert shown(output(holdfast, 'show', '--', name).split(b'\n')[0]) == \
            b'Name:     ' + name
        said = output(holdfast, 'watch', '-qw0', '--json', '--', name)
        assert of_json(said) == name, said
        said = output(holdfast, 'break', '-y', '--', name)
        assert shown(said).startswith(b'broken: ' + name + b': held'), said
        holder.stdin.close()  # its release reports that the lock was lost
        assert holder.wait(PATIENCE_S) == 79
    said = output(holdfast, 'show', '--', name, status=1)
    assert shown(said) == name + b': no client holds it or waits for it\n', said


def main():
    if sys.argv[1] == 'answer':
        return answer(sys.argv[2], sys.argv[3:])
    for name in NAMES:
        try_name(sys.argv[2].encode(), name)
        print(name)
    return 0


sys.exit(main())
