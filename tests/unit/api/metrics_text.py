"""metrics_text.py METRICS_PRINT: checks the output of hf_metrics_text() with the
parser of the Prometheus project."""

import os
import subprocess
import sys
import tempfile

from prometheus_client import parser

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', '..', 'docs'))
import cases  # noqa: E402

NAME = 'a\\b "c"\nd\\x09e ä \\xff {x="y"}'
FIRST = {'backend': 'shm', 'name': NAME}
SECOND = {'backend': 'shm', 'name': ''}
BOUNDS = [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000,
          100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000,
          25000000, 50000000, 100000000]

with tempfile.TemporaryDirectory() as place:
    TEXT = subprocess.run([sys.argv[1], 'shm://' + place + '/locks'], check=True,
                          capture_output=True).stdout.decode('utf-8')
FAMILIES = list(parser.text_string_to_metric_families(TEXT))


def values(name, labels, key='result'):
    """Returns a dict that maps the value of the label `key` to the value of the sample."""
    found = {}
    for sample in [s for f in FAMILIES for s in f.samples]:
        rest = {k: v for k, v in sample.labels.items() if k != key}
        if sample.name == name and rest == labels:
            assert sample.labels.get(key) not in found, sample
            found[sample.labels.get(key)] = sample.value
    return found


def every_family_is_there_once_with_its_type():
    types = {f.name: f.type for f in FAMILIES}
    # The parser removes the suffix _total from the names.
    assert types == {
        'holdfast_acquires': 'counter', 'holdfast_releases': 'counter',
        'holdfast_holds_lost': 'counter', 'holdfast_renewals': 'counter',
        'holdfast_disconnects': 'counter', 'holdfast_reconnects': 'counter',
        'holdfast_held': 'gauge', 'holdfast_waiting': 'gauge',
        'holdfast_wait_seconds': 'histogram'}, types
    assert len(FAMILIES) == len(types)
    assert all(f.documentation for f in FAMILIES)
    for kind in ('HELP', 'TYPE'):
        assert TEXT.count('# %s ' % kind) == len(types)


def no_sample_is_there_twice():
    samples = [(s.name, tuple(sorted(s.labels.items())))
               for f in FAMILIES for s in f.samples]
    assert len(samples) == len(set(samples)) == 2 * (13 + len(BOUNDS) + 3)


def numbers_are_those_of_the_struct():
    assert values('holdfast_acquires_total', FIRST) == {
        'granted': 1000, 'busy': 3, 'timed_out': 4, 'cancelled': 5,
        'failed': 6}
    assert values('holdfast_renewals_total', FIRST) == {
        'confirmed': 8, 'failed': 9}
    for name, number in (('releases_total', 1), ('holds_lost_total', 7),
                         ('disconnects_total', 10), ('reconnects_total', 11),
                         ('held', 12), ('waiting', float(2**64 - 1))):
        assert values('holdfast_' + name, FIRST) == {None: number}, name


def the_second_series_has_its_own():
    acquires = values('holdfast_acquires_total', SECOND)
    assert acquires['granted'] == 2 and sum(acquires.values()) == 2
    assert values('holdfast_releases_total', SECOND) == {None: 2}
    assert values('holdfast_held', SECOND) == {None: 0}


def the_histogram_is_cumulative():
    buckets = values('holdfast_wait_seconds_bucket', FIRST, 'le')
    assert len(buckets) == len(BOUNDS) + 1
    for i, us in enumerate(BOUNDS):
        near = [v for le, v in buckets.items()
                if abs(float(le) * 1e6 - us) < us / 1e6]
        assert near == [10 * i], (us, near)
    assert buckets['+Inf'] == 1000
    assert values('holdfast_wait_seconds_count', FIRST) == {None: 1000}
    assert values('holdfast_wait_seconds_sum', FIRST) == {None: 1.500000001}


sys.exit(cases.run([every_family_is_there_once_with_its_type,
                    no_sample_is_there_twice,
                    numbers_are_those_of_the_struct,
                    the_second_series_has_its_own,
                    the_histogram_is_cumulative]))
