"""Checks the page of `holdfast lab --html' in Chromium: page.py HOLDFAST, or
page.py FILE.html for an existing page. With HOLDFAST, the test runs the lab without servers.
The page then shows the scenarios that need no server, and says why it lacks the others.

The test shows the page in frames of 390 and of 1280 pixels, light and dark, and
measures it with a script in the surrounding page, because the page itself has none. At
least one row must have an overlap.
"""

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                '..', 'docs'))
import cases  # noqa: E402

NARROW, WIDE = 390, 1280
TIMEOUT_S = 300  # for a machine that is busy with other tests



def make_page():
    """Returns the page of a run of all scenarios that need no server, with small
    arguments."""
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, 'page.html')
        subprocess.run([sys.argv[1], 'lab', 'all', '--backends', 'shm',
                        '--seconds', '0.1', '--ttl', '500ms', '--waiters',
                        '40', '--readers', '20', '--workers', '4', '--html',
                        file], check=True, stdout=subprocess.DEVNULL)
        with open(file, encoding='utf-8') as made:
            return made.read()


if sys.argv[1].endswith('.html'):
    with open(sys.argv[1], encoding='utf-8') as f:
        page = f.read()
else:
    page = make_page()

# A frame with srcdoc has the outer page's origin, so the outer page's script may read the frame.
# The script opens folded parts, because their content must fit, too.
WRAPPER = '''<!DOCTYPE html>
<meta charset="utf-8"><meta name="color-scheme" content="light dark">
<body>%s<pre id="result"></pre>
<script>
function channels(colour) {
  return colour.match(/[\\d.]+/g).map(Number);
}
function luminance(colour) {
  const [r, g, b] = channels(colour).slice(0, 3).map(c => {
    c /= 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
function measure(frame) {
  const view = frame.contentWindow, doc = view.document;
  const style = e => view.getComputedStyle(e);
  const name = e => e.tagName + '.' + (e.getAttribute('class') || '') + ' ' +
                    e.textContent.trim().slice(0, 40);
  const box = e => e.getBoundingClientRect();
  const seen = e => box(e).width > 0 && box(e).height > 0 &&
                    !e.closest('title, thead, defs, symbol');
  const background = e => {
    for (; e; e = e.parentElement) {
      const [r, g, b, alpha = 1] = channels(style(e).backgroundColor);
      if (alpha == 1)
        return style(e).backgroundColor;
    }
    throw 'no background';
  };
  const faint = e => {
    const text = [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim());
    if (!text)
      return false;
    if (e.tagName != 'text')
      return contrast(style(e).color, background(e)) < 4.5;
    const halo = style(e).stroke;
    return contrast(style(e).fill,
                    halo == 'none' ? background(e) : halo) < 4.5;
  };
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 &&
                         a.top < b.bottom - 3 && b.top < a.bottom - 3;
  const collisions = svg => {
    const texts = [...svg.querySelectorAll('.note, .two, .name, .tick')];
    const found = [];
    texts.forEach((a, i) => texts.slice(i + 1).forEach(b => {
      if (meet(box(a), box(b)))
        found.push(name(a) + ' / ' + name(b));
    }));
    return found;
  };
  const timeline = svg => {
    const holds = [...svg.querySelectorAll('rect.holds')].map(box);
    let both = -1; /* pixels for which two lanes hold at once */
    holds.forEach((a, i) => holds.slice(i + 1).forEach(b => {
      if (a.top != b.top)
        both = Math.max(both, Math.min(a.right, b.right) -
                              Math.max(a.left, b.left));
    }));
    const overlaps = [...svg.querySelectorAll('.overlap')];
    return {
      name: svg.querySelector('title').textContent, both: both,
      overlaps: overlaps.filter(seen).length,
      lanes: overlaps.map(e => new Set([...e.querySelectorAll('.hatch')]
                                       .map(h => box(h).top)).size),
      text: [...svg.querySelectorAll('.two')].map(e => e.textContent),
      collisions: collisions(svg),
    };
  };
  doc.querySelectorAll('details').forEach(e => { e.open = true; });
  const elements = [...doc.body.querySelectorAll('*')].filter(seen);
  return {
    width: view.innerWidth,
    scroll: doc.documentElement.scrollWidth,
    elements: elements.length,
    beyond: elements.filter(e => box(e).right > view.innerWidth + 0.5 ||
                                 box(e).left < -0.5).map(name),
    background: style(doc.body).backgroundColor,
    body: contrast(style(doc.body).color, background(doc.body)),
    verdicts: [...doc.querySelectorAll('td.verdict')].map(
        e => contrast(style(e).color, background(e))),
    signs: [...doc.querySelectorAll('td.verdict')].map(
        e => e.querySelector('svg.sign title').textContent),
    faint: elements.filter(faint).map(name),
    timelines: [...doc.querySelectorAll('svg.timeline')].filter(seen)
        .map(timeline),
    loaded: view.performance.getEntriesByType('resource').map(e => e.name),
  };
}
addEventListener('load', () => {
  let result;
  try {
    result = [...document.querySelectorAll('iframe')].map(measure);
  } catch (e) {
    result = String(e);
  }
  document.getElementById('result').textContent = JSON.stringify(result);
});
</script>
'''


def browser():
    for name in ('chromium', 'chromium-browser', 'google-chrome'):
        if shutil.which(name):
            return name
    raise FileNotFoundError('chromium: install the package chromium')


def look(scheme):
    """Returns the measurements in the narrow and in the wide frame."""
    frames = ''.join('<iframe srcdoc="%s" style="width:%dpx;height:900px;'
                     'border:0"></iframe>' % (html.escape(page), width)
                     for width in (NARROW, WIDE))
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'wrapper.html')
        with open(path, 'w', encoding='utf-8') as out:
            # The script contains percent signs, so WRAPPER is not formatted by %.
            out.write(WRAPPER.replace('%s', frames, 1))
        done = subprocess.run(
            # Chromium has no sandbox for root; the page is a trusted one.
            [browser(), '--headless', '--no-sandbox', '--disable-gpu',
             '--disable-dev-shm-usage', '--no-first-run',
             '--user-data-dir=' + os.path.join(directory, 'profile'),
             '--blink-settings=preferredColorScheme=%d' %
             (0 if scheme == 'dark' else 1),
             '--timeout=%d' % (TIMEOUT_S * 1000), '--window-size=1400,1000',
             '--dump-dom', 'file://' + path],
            env={**os.environ, 'HOME': directory}, timeout=TIMEOUT_S,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    dom = done.stdout.decode('utf-8', 'replace')
    found = re.search(r'<pre id="result">(.+?)</pre>', dom, re.DOTALL)
    assert found, (done.returncode, done.stderr.decode()[-2000:], dom[:2000])
    result = json.loads(html.unescape(found[1]))
    assert isinstance(result, list), result
    return result


views = {}


def every_view():
    """Returns all measurements. The first call starts Chromium once for each color scheme."""
    for scheme in ('light', 'dark'):
        if scheme not in views:
            views[scheme] = look(scheme)
    return [view for pair in views.values() for view in pair]


def test_the_page_is_shown_at_both_widths():
    for view, width in zip(every_view(), (NARROW, WIDE) * 2):
        assert view['width'] == width, view['width']
        assert view['elements'] > 20, view['elements']


def test_nothing_overflows():
    for view in every_view():
        assert view['scroll'] <= view['width'], (view['scroll'], view['width'])
        assert not view['beyond'], (view['width'], view['beyond'][:10])


def test_dark_is_dark_and_light_is_light():
    every_view()
    for light, dark in zip(views['light'], views['dark']):
        numbers = [sum(map(int, re.findall(r'\d+', view['background'])[:3]))
                   for view in (light, dark)]
        assert numbers[0] > 600 and numbers[1] < 160, numbers


def test_texts_have_contrast():
    for view in every_view():
        assert view['body'] >= 4.5, view['body']
        assert view['verdicts'] and min(view['verdicts']) >= 4.5
        assert not view['faint'], view['faint'][:10]


def test_every_verdict_has_a_sign_that_is_no_colour():
    known = {'goes well', 'goes wrong, as expected', 'unexpected'}
    for view in every_view():
        assert view['signs'] and set(view['signs']) <= known, view['signs']


def test_an_overlap_is_drawn_where_two_hold_at_once():
    for view in every_view():
        drawn = [line for line in view['timelines'] if line['overlaps']]
        assert drawn, 'no row with an overlap'
        for line in view['timelines']:
            # A box is drawn at least 2 pixels wide, however short the time.
            assert line['overlaps'] or line['both'] < 2.5, line
            assert not line['overlaps'] or line['both'] > -0.5, line
        for line in drawn:
            assert min(line['lanes']) >= 2, line
            assert line['text'], line
            for text in line['text']:
                assert re.search(r'\d+ holders for [\d.\s]+ms$', text), line


def test_labels_do_not_cover_each_other():
    for view in every_view():
        for line in view['timelines']:
            assert not line['collisions'], (view['width'], line['name'],
                                            line['collisions'][:5])


def test_nothing_is_loaded_and_no_script_is_run():
    for view in every_view():
        assert not view['loaded'], view['loaded']
    style = re.search(r'<style>(.*?)</style>', page, re.DOTALL)[1]
    assert '@import' not in style
    assert not re.search(r'<script|<[^>]*\son\w+="', page, re.IGNORECASE)
    for link in re.findall(r'\b(?:src|href|srcset|action|data)="([^"]*)"',
                           page):
        assert link.startswith('#') or link == 'data:,', link
    for link in re.findall(r'url\(([^)]*)\)', style):
        assert link.startswith('#'), link


def test_links_lead_to_something():
    ids = re.findall(r'\sid="([^"]*)"', page)
    assert len(ids) == len(set(ids)), 'an id occurs twice'
    for link in re.findall(r'href="#([^"]*)"', page):
        assert link in ids, link


def test_headings_captions_and_language_are_there():
    assert re.match(r'<!DOCTYPE html>\s*<html lang="en">', page)
    assert page.count('<h1>') == 1
    assert page.count('<table') == page.count('<caption>') > 0
    for svg in re.findall(r'<svg[^>]*role="img"[^>]*>\s*<(\w+)', page):
        assert svg == 'title', svg


sys.exit(cases.run(cases.of(globals())))
