"""Tests what src/backends/redis/lua/README.md says about the scripts that the build
assembles: scripts.py SOURCE BUILD
"""

import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

import cases
from servers import Redis
from snippet import snippets

lua = pathlib.Path(sys.argv[1]) / 'src/backends/redis/lua'
built = pathlib.Path(sys.argv[2]) / 'src/backends/redis/lua'
redis = Redis()


def test_the_server_knows_each_by_the_digest_of_its_file():
    for source in sorted(lua.glob('*.lua')):
        text = (built / source.name).read_text('utf-8')
        said = redis.call('SCRIPT', 'LOAD', text)
        digest = hashlib.sha1(text.encode('utf-8')).hexdigest()
        assert said == digest, (source.name, said)


def test_every_piece_is_in_use():
    sources = [*lua.glob('*.lua'), *lua.glob('pieces/*.lua')]
    texts = ''.join(s.read_text('utf-8') for s in sources)
    for piece in lua.glob('pieces/*.lua'):
        assert (' ' + piece.name in texts or '=' + piece.name in texts or
                piece.name == 'expressions.lua'), piece.name


def test_what_is_shown_is_what_is_built():
    readme = lua / 'README.md'
    shown = snippets(readme, 'lua')
    assert shown
    built_texts = {s.name: (built / s.name).read_text('utf-8')
                   for s in lua.glob('*.lua')}
    for text in shown:
        assert text.rstrip('\n') in built_texts.values(), text
    rows = re.findall(r'^\| `(KEYS|ARGV)\[(\d+)\]` \| `\1\.(\w+)` \|',
                      readme.read_text('utf-8'), re.M)
    for array, word in (('KEYS', 'keys'), ('ARGV', 'args')):
        head = re.search(r'^--@%s (.*)$' % word,
                         (lua / 'take.lua').read_text('utf-8'), re.M)[1]
        assert [(str(i), name) for i, name in enumerate(head.split(), 1)] == [
            row[1:] for row in rows if row[0] == array], rows


def by_hand(script, keys, args):
    return redis.call('--eval', str(built / script), *keys, ',', *args)


def test_they_run_by_hand():
    keys = ['m', 'info', 'waiters', 'token', 'crowd']
    said = by_hand('take_s.lua', keys,
                   ['me', '60000', '0', '0', '0 1', '0', '0'])
    assert said.splitlines()[0] == '2', said
    assert redis.call('GET', 'm') == 'me'
    assert by_hand('drop_s.lua', keys, ['you']) == '0'
    assert by_hand('drop_s.lua', keys, ['me']) == '1'
    assert redis.call('EXISTS', 'm') == '0'


def test_a_release_hands_the_lock_to_a_waiter():
    holder, waiter = '1' * 36 + ':7', '2' * 36 + ':3'
    wake = 'holdfast:wake:{}:' + waiter[:36]
    keys = ['n', 'holdfast:info:{n}', 'holdfast:waiters:{n}',
            'redisson_lock_token:{n}', 'holdfast:crowd:{n}']
    fair = ['redisson_lock_queue:{n}', 'redisson_lock_timeout:{n}',
            'holdfast:seen:{n}']

    def take(owner, queue):
        return by_hand('take.lua', keys, [owner, '30000', '0', '86400000',
                                          '0 1\nhost\n', queue, '30000'])

    assert take(holder, '0').splitlines()[0] == '2'
    with subprocess.Popen(['redis-cli', '-s', redis.socket, 'SUBSCRIBE', wake],
                          stdout=subprocess.PIPE, encoding='utf-8') as ear:
        assert ear.stdout.readline() == 'subscribe\n'
        assert take(waiter, '1').splitlines()[0] == '3'
        seen = redis.call('HGET', keys[4], waiter).split()[1]
        assert by_hand('drop.lua', keys + fair,
                       [holder, 'redisson_lock__channel:{n}',
                        'holdfast:mark:{n}']) == '1'
        token = redis.call('GET', keys[3])
        said = [ear.stdout.readline().strip() for _ in range(5)][-1]
        assert said == f'u3 {token} {seen} n', said
        ear.terminate()
    assert redis.call('HKEYS', 'n') == waiter
    assert redis.call('GET', keys[1]).startswith(waiter + '\nu\n')
    assert redis.call('EXISTS', keys[2], keys[4]) == '0'


def assemble(script, piece=''):
    """Returns what assemble.py writes for a script with one piece, or its error."""
    with tempfile.TemporaryDirectory() as name:
        here = pathlib.Path(name)
        (here / 'pieces').mkdir()
        (here / 'out').mkdir()
        (here / 'redis.h').write_text('#define RD_MS 7 /* ms */\n')
        (here / 'pieces/expressions.lua').write_text(
            '--@define more (n+$RD_MS)\n')
        (here / 'pieces/a.lua').write_text(piece)
        (here / 'take.lua').write_text(script)
        done = subprocess.run(
            [sys.executable, lua / 'assemble.py', here / 'redis.h',
             here / 'out', here / 'd', here / 'take.lua'],
            stderr=subprocess.PIPE, encoding='utf-8', check=False)
        if done.returncode:
            return done.stderr.strip().partition(': ')[2]
        return (here / 'out/take.lua').read_text()


def test_names_become_what_they_stand_for():
    said = assemble('-- For people.\n--@keys lock info\n--@args owner\n'
                    'local n=1\n\nif n then\n'
                    '  --@include a.lua o=ARGV.owner;\n  --@  k="u"\nend\n',
                    '--@takes o k\n--@needs n\n'
                    "return {KEYS.info,$o,'$k',$more}\n")
    assert said == ('local n=1\nif n then\n'
                    "return {KEYS[2],ARGV[1],'u',(n+7)}\nend"), said


def test_what_is_wrong_ends_the_build():
    use = '--@include a.lua\n'
    for script, piece, wanted in (
            (use, 'return n\n', '--@needs should say: n'),
            (use, '--@needs n\nreturn 1\n', '--@needs should say: nothing'),
            (use, 'local n=1\n', '--@defines should say: n'),
            (use, '--@needs n\nreturn n\n', 'n is not defined'),
            ('if x then\n  ' + use + 'end\n', '', 'x is not defined'),
            (use, '--@takes o\nreturn $o\n', 'a.lua takes o'),
            ('return KEYS.lock\n', '', 'the script has no KEYS.lock'),
            ('return $less\n', '', '$less is unknown'),
            ('--@include b.lua\n', '', 'there is no piece b.lua'),
            ('--@import a.lua\n', '', '--@import is unknown')):
        said = assemble(script, piece)
        assert said == wanted, (script, piece, said)


sys.exit(cases.run(cases.of(globals())))
