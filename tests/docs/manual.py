"""Compares the manual with the code: manual.py ROOT COMMAND SCHEME...

The manual must describe what the code has (options of a URL and of the command,
exit statuses, error codes, events), and everything that the manual refers to must exist.
"""

import glob
import os
import re
import subprocess
import sys

import cases

root, command = (os.path.abspath(path) for path in sys.argv[1:3])
schemes = sys.argv[3:]


def read(*path):
    with open(os.path.join(root, *path), encoding='utf-8') as f:
        return f.read()


pages = {os.path.basename(path): read(path)
         for path in glob.glob(os.path.join(root, 'docs', 'man', '*.[137]'))}
header = read('include', 'holdfast.h')


def section(page, title):
    """Returns the text below a heading, up to the next heading of the same or a higher rank."""
    begin = re.search(r'^\.(S[hs]) %s$' % re.escape(title), pages[page],
                      re.MULTILINE)
    assert begin, (page, title)
    ends = r'^\.Sh ' if begin[1] == 'Sh' else r'^\.S[hs] '
    rest = pages[page][begin.end():]
    end = re.search(ends, rest, re.MULTILINE)
    return rest[:end.start()] if end else rest


def printed(*arguments):
    return subprocess.check_output([command, *arguments], encoding='utf-8')


def known_options(url):
    """Returns the options that the error for an unknown option lists."""
    done = subprocess.run([command, 'run', '-b', url + '?nonsense=1', 'a',
                           'true'], stderr=subprocess.PIPE, check=False,
                          encoding='utf-8')
    assert done.returncode == 64, done.stderr
    found = re.search(r'unknown option "nonsense"; \w+ has (.*)', done.stderr)
    assert found, done.stderr
    return set(found[1].split(', '))


def documented_options(title):
    items = re.findall(r'^\.It Cm (.*)$', section('holdfast-url.7', title),
                       re.MULTILINE)
    return {word for item in items for word in item.split(' , ')}


def test_every_option_of_a_url_is_documented():
    common = documented_options('Options of all backends')
    assert common
    for scheme in schemes:
        url = scheme + (':' if scheme == 'shm' else '://localhost')
        known = known_options(url)
        documented = common | documented_options('Options of ' + scheme)
        assert known == documented, (scheme, known ^ documented)


def test_every_option_of_the_command_is_documented():
    verbs = set(re.findall('^  ([a-z]+) {2,}', printed('help'),
                           re.MULTILINE)) - {'help'}
    assert len(verbs) > 5
    for verb in verbs:
        page = f'holdfast-{verb}.1'
        options = set(re.findall(r'(?<![\w-])--([a-z-]+)',
                                 printed('help', verb)))
        # The forms .Fl x , -long and .Fl -long both mean --long.
        there = set(re.findall(r'[ ,]-([a-z][a-z-]+)', pages[page]))
        assert options and options - there <= {'help', 'version'}, \
            options - there


def test_every_scenario_of_the_lab_is_documented():
    names = re.findall(r'^  ([a-z-]+) ', printed('lab', 'list'), re.MULTILINE)
    assert len(names) > 10
    text = section('holdfast-lab.1', 'SCENARIOS')
    run = read('docs', 'lab.md').split('```text')[1]
    for name in names:
        assert '.It Cm %s\n' % name in text, name
        assert re.search('^%s: ' % name, run, re.MULTILINE), name
    assert '!!' not in run and run.count(' \u2713 ') > 100
    assert run.count(' \u2717 ') > 30


def test_every_server_that_is_tried_is_documented():
    sys.path.insert(0, os.path.join(root, 'tests', 'interop'))
    servers = __import__('servers').SERVERS
    text = section('holdfast-url.7', 'Versions of the servers')
    for server in servers:
        product, version = server.name.split()
        minor = '.'.join(version.split('.')[:2])
        row = re.search(r'^\.It %s Ta (.*) Ta (.*)$' % product, text,
                        re.MULTILINE)
        assert row, product
        if server.refused:
            assert minor not in row[1], server
            assert re.search(r'(\S+) or later', server.refused)[1] in row[2]
        else:
            assert minor in row[1].split(', '), server
            for readme in ('README.md', 'README.zh.md'):
                assert re.search(r'%s\b.*\b%s\b' % (product,
                                 re.escape(minor)), read(readme)), server


def test_every_exit_status_is_documented():
    enum = read('cli', 'shared', 'exit_code.h')
    enum = enum.split('enum cli_exit {')[1].split('}')[0]
    codes = set(re.findall(r'CLI_\w+ = (\d+)', enum))
    assert len(codes) > 5
    text = section('holdfast-run.1', 'EXIT STATUS')
    there = set(re.findall(r'\b(\d+)\b', text))
    # The statuses 0 and 1 are those of the command that is run.
    assert codes - there == {'0', '1'}, codes - there
    assert not codes - {'0', '1'} - set(re.findall(r'\d+',
                                                   printed('help', 'run')))


def test_every_error_code_is_documented():
    codes = re.findall(r'^    X\((\w+), -\d+,', header, re.MULTILINE)
    assert len(codes) > 10
    text = section('holdfast.3', 'ERRORS')
    for code in codes:
        assert '.It Dv HF_%s\n' % code in text, code


def test_every_event_and_capability_is_documented():
    words = set(re.findall(r'^    (HF_(?:EVENT|CAP)_\w+)', header,
                           re.MULTILINE))
    assert len(words) > 10
    text = ''.join(pages.values())
    for word in words:
        assert re.search(r'\b%s\b' % word, text), word


def fields(text):
    """Returns the declarations in a text, without comments and blanks."""
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.DOTALL)
    return re.sub(r'\s+', '', text)


def test_every_structure_is_shown_as_it_is():
    shown = fields(''.join(pages.values()))
    structures = re.findall(r'^typedef struct hf_\w+ \{.*?^\} \w+;', header,
                            re.MULTILINE | re.DOTALL)
    assert len(structures) > 10
    for text in structures:
        # The members of these two structures are private to the library.
        if not re.match(r'typedef struct hf_(cancel|guard) ', text):
            assert fields(text) in shown, text


def documented_names():
    names = set(pages)
    for page, text in pages.items():
        names |= {name + page[-2:]
                  for name in re.findall(r'^\.Nm (\w[\w-]*)', text,
                                         re.MULTILINE)}
    return names


def test_references_lead_somewhere():
    names = documented_names()
    for page, text in pages.items():
        for name, number in re.findall(r'\.?\bXr (\S+) (\d)', text):
            if re.match(r'hf_|holdfast|HF_', name):
                assert f'{name}.{number}' in names, (page, name, number)


def test_every_page_can_be_found_from_another():
    for page in pages:
        name, number = page.rsplit('.', 1)
        reference = f'.Xr {name} {number}'
        others = [other for other in pages if other != page and
                  reference in section(other, 'SEE ALSO')]
        assert others, page


def test_every_example_is_shown():
    readme = read('README.md')
    built = read('examples', 'meson.build')
    for path in glob.glob(os.path.join(root, 'examples', '*.c')):
        name = os.path.basename(path)
        assert f'(examples/{name})' in readme, name
        assert f"'{name[:-2]}'" in built, name
    for page, text in pages.items():
        for name in re.findall(r'examples/\w+\.c', text):
            assert os.path.exists(os.path.join(root, name)), (page, name)


def sources():
    """Returns the names of all source files, and the set of the words in them."""
    names, texts = set(), [read('dev')]
    for top in ('include', 'src', 'cli', 'lab', 'bench', 'examples', 'tests'):
        for path, _, files in os.walk(os.path.join(root, top)):
            names |= set(files)
            texts += [read(path, name) for name in files
                      if re.search(r'\.(c|h|in|map|build)$', name)]
    return names, set(re.findall(r'\w+', ''.join(texts)))


def test_what_documents_name_is_in_the_code():
    names, words = sources()
    for pattern in ('*.md', 'docs/*.md', 'docs/guarantees/*.md', 'cli/*.md',
                    'lab/*.md', 'tests/*.md', 'src/backends/*/README.md'):
        for path in glob.glob(os.path.join(root, pattern)):
            if os.path.basename(path) == 'moved.md':
                continue  # it has old names; .ci/papers.py checks it
            text = re.sub(r'^```.*?^```$', '', read(path),
                          flags=re.MULTILINE | re.DOTALL)
            for quoted in re.findall(r'`([^`\n]+)`', text):
                file = re.fullmatch(r'[\w/.-]*?([\w-]+\.(?:c|h|py|sh))', quoted)
                if file:
                    assert file[1] in names, (path, quoted)
                    continue
                for word in re.findall(r'\b(?:hf|HF|test)_\w*[a-zA-Z]\b',
                                       quoted):
                    assert word in words, (path, quoted)


sys.exit(cases.run(cases.of(globals())))
