"""Runs a small scenario of the lab on temporary servers. Each row must have the outcome
and the figures in expect.py, there must be no other rows, each claim must be found either
true or false, and nothing may be left behind.

scenarios.py HOLDFAST SCENARIO
"""

import json
import re
import subprocess
import sys

import expect
import traces

command, scenario = sys.argv[1:]
TEXT_MAX = 200  # LAB_TEXT_MAX of lab/runner/report.h, with the final NUL


def key(row):
    """Returns what identifies a row: the values of its key columns."""
    columns = expect.KEYS + expect.MORE_KEYS.get(scenario, ())
    return ' '.join(str(row[column]) for column in columns
                    if row.get(column) is not None)


def explain(row):
    print('# ' + json.dumps(row))


def check(wanted, rows):
    """Yields pairs of a text and whether the text is true: a pair for each wanted row, and a
    last pair for the absence of other rows."""
    for name, (outcome, verdict) in wanted.items():
        row = rows.pop(name, None)
        fine = (row is not None and row['outcome'] == outcome == row['expected']
                and re.fullmatch(verdict, row['verdict']))
        if row is not None and not fine:
            explain(row)
        yield '%s: %s' % (name, verdict), fine
    for row in rows.values():
        explain(row)
    yield 'no other rows', not rows


def check_figures(rows):
    """Checks that every row has the figures, and that they are consistent. Yields pairs as
    check() does."""
    columns = expect.COLUMNS.get(scenario, ())
    text, is_true = expect.FIGURES.get(scenario, ('', lambda row: True))
    for row in rows:
        lacks = [column for column in columns if row.get(column) is None]
        fine = not lacks and is_true(row)
        if not fine:
            explain(row)
        if columns:
            yield '%s has %s; %s' % (key(row), ', '.join(columns), text), fine


def check_claims(claims):
    """Checks that the run has found each of the claims either true or false, and has made no
    other claims. Yields pairs as check() does."""
    wanted = expect.CLAIMS.get(scenario, ())
    found = {claim['claim']: claim for claim in claims}
    for text in wanted:
        claim = found.pop(text, {})
        yield ('a claim is decided: ' + text,
               isinstance(claim.get('confirmed'), bool)
               and claim.get('figures')
               and not re.search(r'\b(nan|inf)\b', claim['figures'])
               and len(claim['figures'].encode()) < TEXT_MAX - 1)  # a longer one is cut off
    for claim in found.values():
        explain(claim)
    yield 'no other claims', not found and len(claims) == len(wanted)


def main():
    arguments, wanted = expect.SCENARIOS[scenario]
    with traces.Place() as place:
        run = subprocess.run(
            [command, 'lab', scenario, '--servers', '--json', *arguments],
            stdout=subprocess.PIPE, encoding='utf-8', env=place.environment)
        objects = [json.loads(line) for line in run.stdout.splitlines()]
        rows = [o for o in objects if 'verdict' in o]
        results = [('it ends with 0', run.returncode == 0),
                   ('each row is there once',
                    len({key(row) for row in rows}) == len(rows)),
                   *check(dict(wanted), {key(row): row for row in rows}),
                   *check_figures(rows),
                   *check_claims([o for o in objects if 'claim' in o]),
                   ('nothing is left behind', place.is_clean())]
    print('1..%d' % len(results))
    for number, (text, fine) in enumerate(results, 1):
        print('%sok %d - %s' % ('' if fine else 'not ', number,
                                text.replace('#', '')))
    return 0 if all(fine for _, fine in results) else 1


sys.exit(main())
