"""Tests completion: complete.py HOLDFAST SOURCE_DIRECTORY

First asks `holdfast __complete' directly, and then types on the terminals of shells. In those
shells `holdfast' is a script that prints its arguments, which show what the shell inserted, and
whether the shell's quoting gives a program the right words.
"""

import ast
import os
import socket
import subprocess
import sys
import tempfile
import time

from terminal import Terminal

sys.path.insert(1, os.path.join(sys.argv[2], 'tests', 'docs'))
import cases  # noqa: E402

HOLDFAST, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
COMPLETIONS = os.path.join(SOURCE, 'completions')
# No name is a prefix of another; two letters are enough to complete each.
NAMES = [b'nightly', b'two words', b"it's", b'do"uble', b'$home', b'back\\slash',
         b'eq=u:al', b'aste*risk?', b'ta\tb', b'li\nne', b'\xffbytes\x80',
         'ünï'.encode(), b'#hash', b'am&p;', b'~tilde']

base = tempfile.mkdtemp(prefix='holdfast-complete.')
places = os.path.join(base, 'bin')
os.mkdir(places)
env = {**os.environ, 'HOLDFAST_URL': 'shm://%s/shm' % base, 'TERM': 'xterm',
       'LC_ALL': 'C.UTF-8', 'HOME': base, 'ZDOTDIR': base, 'INPUTRC': '/dev/null',
       'PATH': places + ':' + os.environ['PATH'],
       'HOLDFAST_COMPLETE_MS': '60000'}


def write(path, text, mode=0o644):
    with open(os.path.join(base, path), 'w', encoding='utf-8') as file:
        file.write(text)
    os.chmod(os.path.join(base, path), mode)


def complete(*words, **more):
    """Returns the heading, the offered words and their descriptions."""
    done = subprocess.run([HOLDFAST, '__complete', '--', *words], check=True,
                          stdout=subprocess.PIPE, env={**env, **more})
    records = [os.fsdecode(one) for one in done.stdout.split(b'\0')[:-1]]
    return (records[0] if records else None, records[1::2], records[2::2])


def offered(*words, **more):
    return complete(*words, **more)[1]


def test_verbs_and_what_they_do():
    heading, words, descriptions = complete('')
    assert heading == 'words' and set(words) >= {'run', 'bench', 'lab', 'help'}
    assert all(descriptions)
    assert offered('ru') == ['run']
    assert offered('nonsense') == [] and offered('nonsense', '') == []
    assert offered('help', 'be') == ['bench']
    assert offered('help', 'run', '') == []
    assert offered('--v') == ['--version']
    assert complete()[1] == words


def test_flags_of_every_verb():
    """Completion offers exactly the flags that --help shows."""
    for verb in offered('help', ''):
        if verb in ('help', 'lab'):
            continue
        text = subprocess.run([HOLDFAST, verb, '--help'], check=True,
                              stdout=subprocess.PIPE, encoding='utf-8').stdout
        shown = [word for line in text.splitlines()
                 if line[:6] == '      ' or line[:3] == '  -'
                 for word in line[:30].replace(',', ' ').split()[:2]
                 if word.startswith('--')]
        assert offered(verb, '--') == shown, (verb, shown)
        assert offered(verb, '-') == shown
        assert '--version' in shown


def test_values_of_a_fixed_set():
    assert offered('run', '--on-lost', '') == ['kill', 'warn']
    assert offered('run', '--on-lost', 'w') == ['warn']
    assert offered('run', '--on-lost=w') == ['--on-lost=warn']
    assert offered('bench', '--kind', 's') == ['semaphore']
    assert complete('run', '--label', '') == (None, [], [])
    assert offered('run', '--label', '--on-lost', '-x', '--on') == ['--on-lost']


def test_urls():
    heading, words, _ = complete('run', '-b', '')
    assert heading == 'part'
    assert {'shm:', 'redis://', 'zk://'} <= set(words)
    assert offered('run', '-b', 'zk') == ['zk://']
    assert offered('run', '-nbzk') == ['-nbzk://']
    assert offered('run', '--backend=zk') == ['--backend=zk://']
    assert offered('run', '--back', 'zk') == ['zk://']
    heading, words, _ = complete('run', '-b', 'shm:///x?')
    assert heading == 'part' and 'shm:///x?mode=' in words
    assert offered('run', '-b', 'shm:?ttl=1s&mod') == ['shm:?ttl=1s&mode=']
    assert offered('run', '-b', 'shm:?ttl=1') == []
    assert offered('run', '-b', 'nonsense:?') == []


def test_names_of_locks():
    names = sorted(os.fsdecode(name) for name in NAMES)
    assert sorted(offered('run', '')) == names
    assert offered('run', 'ni') == ['nightly']
    assert offered('run', '-n', '--', 'ni') == ['nightly']
    other = 'shm://%s/other' % base
    assert offered('run', '-b', other, '') == []
    assert not os.path.exists(base + '/other'), 'a key has made memory'
    subprocess.run([HOLDFAST, 'run', '-b', other, 'a', 'true'], check=True)
    assert offered('run', '-b', other, '') == []
    assert offered('run', '-b' + other, '') == []
    assert offered('run', '--backend=' + other, '') == []
    assert offered('run', 'ni', HOLDFAST_URL=other) == []
    assert offered('run', '-b', env['HOLDFAST_URL'], 'ni',
                   HOLDFAST_URL=other) == ['nightly']


def test_every_verb_with_a_name():
    for verb in ('hold', 'show', 'break', 'ask', 'watch', 'ls'):
        assert offered(verb, 'ni') == ['nightly'], verb
        assert offered(verb, '-b', env['HOLDFAST_URL'], 'ni') == ['nightly']
        assert offered(verb, 'nightly', '') == [], verb


def test_words_of_a_verb():
    assert set(offered('latch', '')) == {'set', 'down', 'wait', 'show'}
    assert offered('latch', 'd') == ['down']
    assert offered('latch', '-b', env['HOLDFAST_URL'], 's') == ['set', 'show']
    assert offered('latch', 'show', 'ni') == []
    subprocess.run([HOLDFAST, 'latch', 'set', 'night-shift', '2'], env=env,
                   check=True)
    for word in 'set', 'down', 'wait', 'show':
        assert offered('latch', word, 'ni') == ['night-shift'], word
    for verb in 'show', 'break', 'ask', 'watch', 'ls':
        assert offered(verb, 'ni') == ['night-shift', 'nightly'], verb
    for words in ['run'], ['hold'], ['run', '-l'], ['hold', '-l']:
        assert offered(*words, 'ni') == ['nightly'], words
    assert offered('latch', 'show', 'nightly', '') == []
    subprocess.run([HOLDFAST, 'break', '-y', 'night-shift'], env=env,
                   check=True, stdout=subprocess.DEVNULL)


def test_a_command_after_a_name():
    assert complete('run', 'a', '')[0] == 'command 2'
    assert complete('run', 'a', '--', '')[0] == 'command 3'
    assert complete('run', '-w', '5', 'a', 'ls', '-l', '')[0] == 'command 4'
    assert complete('run', 'a', '--', '-x')[0] == 'command 3'
    assert offered('run', 'a', '-') == ['--']


def test_names_by_a_flag():
    """After -l the first operand is the command."""
    assert offered('run', '-l', 'ni') == ['nightly']
    assert offered('run', '-l', 'a', '--lock=ni') == ['--lock=nightly']
    assert complete('run', '-l', 'a', '')[0] == 'command 3'
    assert complete('run', '-l', 'a', '-l', 'b', 'ls', '')[0] == 'command 5'
    assert complete('run', '-la', '--', 'l')[0] == 'command 3'
    assert '--lock' in offered('run', '-l', 'a', '--')
    assert offered('hold', 'ni') == ['nightly']
    assert complete('hold', '-l', 'a', '') == (None, [], [])


def test_files():
    assert complete('run', '--metrics', '')[0] == 'files 0'
    assert complete('run', '--metrics=a')[0] == 'files 10'


def test_scenarios_of_the_lab():
    assert offered('lab', 'ov') == ['oversell']
    assert {'all', 'list'} <= set(offered('lab', ''))
    assert offered('help', 'lab', 'ov') == ['oversell']
    assert offered('lab', 'oversell', '--stoc') == ['--stock']
    assert offered('lab', 'herd', '--stoc') == []
    assert complete('lab', '--html', '')[0] == 'files 0'
    assert complete('lab', '--html=a')[0] == 'files 7'


def test_a_server_that_does_not_answer():
    with socket.socket() as silent:
        silent.bind(('127.0.0.1', 0))
        silent.listen()
        begin = time.monotonic()
        got = complete('run', '-b', 'redis://127.0.0.1:%d?connect_timeout=1h'
                       '&op_timeout=1h' % silent.getsockname()[1], '',
                       HOLDFAST_COMPLETE_MS='300')
        assert got == (None, [], [])
        assert time.monotonic() - begin < 20
    assert complete('run', '-b', 'redis://127.0.0.1:1', '') == (None, [], [])


def shell(argv, lines):
    """Types the lines, in which \\t is the Tab key. Returns the arguments that the program got
    for each line."""
    got = []
    with Terminal(argv, env, base, columns=200) as terminal:
        for line in lines:
            terminal.wait_for('READY> ')
            terminal.type(line + '\n')
            found = terminal.wait_for(r'ARGS (\[.*?\]) END')
            got.append(ast.literal_eval(found[1]))
    return got


def check(argv, expected):
    got = shell(argv, [line for line, _ in expected])
    for (line, words), has in zip(expected, got):
        assert has == [os.fsencode(word) for word in words], (line, has, words)


# Pairs of what is typed and the arguments that the program gets.
COMMON = [
    ('holdfast ru\t', ['run']),
    ('holdfast run --on-l\tw\tx', ['run', '--on-lost', 'warn', 'x']),
    ('holdfast run --on-lost=w\tx', ['run', '--on-lost=warn', 'x']),
    ('holdfast run -b redi\ts:\thost x', ['run', '-b', 'rediss://host', 'x']),
    ('holdfast run --backend=z\thost x', ['run', '--backend=zk://host', 'x']),
    ("holdfast run -b 'redis://h?connect_t\t5s' x",
     ['run', '-b', 'redis://h?connect_timeout=5s', 'x']),
    ('holdfast run -b redis://h\\?connect_t\t5s x',
     ['run', '-b', 'redis://h?connect_timeout=5s', 'x']),
    ('holdfast run -b shm://%s/other ni\t' % base,
     ['run', '-b', 'shm://%s/other' % base, 'ni']),
    ('holdfast run -b "shm://%s/shm" ni\t' % base,
     ['run', '-b', 'shm://%s/shm' % base, 'nightly']),
    ('holdfast lab --html pag\t', ['lab', '--html', 'page one.html']),
    ('holdfast lab --html=pag\t', ['lab', '--html=page one.html']),
    ('holdfast run nightly -- hf-uni\t',
     ['run', 'nightly', '--', 'hf-unique-command']),
    ('holdfast run -b shm://%s/shm nightly hf-uni\t' % base,
     ['run', '-b', 'shm://%s/shm' % base, 'nightly', 'hf-unique-command']),
    ('holdfast run -l two\t-l ni\thf-uni\t',
     ['run', '-l', 'two words', '-l', 'nightly', 'hf-unique-command']),
    ('holdfast run --metrics=pag\t', ['run', '--metrics=page one.html']),
    ("holdfast run 'two\t", ['run', 'two words']),
    ('holdfast run "two\t', ['run', 'two words']),
    ('holdfast run two\\ w\t', ['run', 'two words']),
    ('holdfast run "\\$h\t', ['run', '$home']),
    ("holdfast run '$h\t", ['run', '$home']),
    ('holdfast run "do\\"\t', ['run', 'do"uble']),
    ("holdfast run 'do\"\t", ['run', 'do"uble']),
    ('holdfast run "it\t', ['run', "it's"]),
]
# Pairs of the beginning of a name, as a user types it, and the name.
BEGUN = [('ni', b'nightly'), ('two', b'two words'), ('it', b"it's"),
         ('do', b'do"uble'), ('\\$', b'$home'), ('ba', b'back\\slash'),
         ('eq', b'eq=u:al'), ('eq=', b'eq=u:al'), ('eq=u:', b'eq=u:al'),
         ('as', b'aste*risk?'), ('ta', b'ta\tb'), ('li', b'li\nne'),
         ('\u00fc', 'ünï'.encode()), ('\\#', b'#hash'), ('am', b'am&p;'),
         ('\\~', b'~tilde')]
NAMED = [('holdfast run %s\t' % begun, ['run', os.fsdecode(name)])
         for begun, name in BEGUN]
# On these lines the completion of another command completes the last word.
OTHERS = [('holdfast run nightly -- hf-unique-command al\t',
           ['run', 'nightly', '--', 'hf-unique-command', 'alpha']),
          ('holdfast run -b shm://%s/shm nightly hf-unique-command al\t' % base,
           ['run', '-b', 'shm://%s/shm' % base, 'nightly',
            'hf-unique-command', 'alpha'])]
BASH = ['bash', '--noprofile', '--rcfile']


def test_bash_types():
    check([*BASH, 'bashrc'], COMMON)


def test_bash_quotes_names():
    check([*BASH, 'bashrc'], NAMED)
    check([*BASH, 'bashrc'],
          [("holdfast run $'li\t", ['run', 'li\nne']),
           ("holdfast run $'\\377\t", ['run', os.fsdecode(b'\xffbytes\x80')])])


def test_bash_with_its_package():
    check([*BASH, 'bashrc-full'], COMMON + NAMED + OTHERS)


def test_zsh_types():
    check(['zsh', '-i'], COMMON)


def test_zsh_quotes_names():
    check(['zsh', '-i'], NAMED)


def test_zsh_other_commands():
    check(['zsh', '-i'], OTHERS)


def test_shells_survive_a_command_that_is_missing():
    """A completion file may be older than the command, or outlive it."""
    done = subprocess.run(
        ['bash', '--norc', '--noprofile', '-c',
         '. "$1"; COMP_WORDS=(holdfast ru) COMP_CWORD=1 COMP_LINE="holdfast ru"'
         '; _holdfast /nonexistent; echo "${#COMPREPLY[@]}"', '-',
         os.path.join(COMPLETIONS, 'holdfast.bash')], env=env, check=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8')
    assert (done.stdout, done.stderr) == ('0\n', ''), done


def prepare():
    write('page one.html', '')
    write('bin/holdfast', '''#!/bin/sh
[ "$1" = __complete ] && exec '%s' "$@"
exec %s -c 'import os, sys
print("ARGS", [os.fsencode(a) for a in sys.argv[1:]], "END")' "$@"
''' % (HOLDFAST, sys.executable), 0o755)
    write('bin/hf-unique-command', '#!/bin/sh\n', 0o755)
    rc = ("PS1='REA''DY> ' PS2=\n"
          "bind 'set bell-style none'\nbind 'set enable-bracketed-paste off'\n"
          ". '%s/holdfast.bash'\ncomplete -W alpha hf-unique-command\n"
          % COMPLETIONS)
    write('bashrc', rc)
    write('bashrc-full', '. /usr/share/bash-completion/bash_completion\n' + rc)
    write('.zshrc', '''PS1='READY> ' PS2=
unsetopt beep prompt_sp prompt_cr
fpath=('%s' $fpath)
autoload -Uz compinit && compinit -u -D
_alpha() { compadd alpha }
compdef _alpha hf-unique-command
''' % COMPLETIONS)


def hold(name):
    """Starts a process that holds the lock until its standard input is closed."""
    return subprocess.Popen([HOLDFAST, 'run', name, '--', 'cat'], env=env,
                            stdin=subprocess.PIPE)


def main():
    prepare()
    holders = [hold(name) for name in NAMES]
    try:
        cases.until(lambda: len(offered('run', '')) == len(NAMES))
        return cases.run(cases.of(globals()))
    finally:
        for one in holders:
            one.stdin.close()
        for one in holders:
            one.wait()
        subprocess.run(['rm', '-rf', base], check=True)


sys.exit(main())
