#!/usr/bin/env python3
"""test_suites.py SOURCE: tests the runner tests/suites/suites.py with suites that
are short shell scripts, listed by a fake `meson`."""
import json
import os
import subprocess
import sys
import tempfile

SOURCE = sys.argv[1]
RUNNER = os.path.join(SOURCE, "tests", "suites", "suites.py")
sys.path.insert(0, os.path.dirname(RUNNER))
import suites as runner  # noqa: E402 pylint: disable=wrong-import-position

CASES = []


def suite(name, script, **more):
    return dict({"name": name, "suite": ["holdfast:unit"],
                 "cmd": ["sh", "-c", script], "depends": [], "env": {},
                 "workdir": None,
                 "timeout": 30, "priority": 0, "is_parallel": True,
                 "protocol": "tap"}, **more)


def tap(*lines):
    return "printf '%s\\n' " + " ".join("'%s'" % line for line in lines)


class Run:
    """A run of the runner with these suites."""

    def __init__(self, suites, *options):
        with tempfile.TemporaryDirectory() as place:
            with open(os.path.join(place, "tests.json"), "w",
                      encoding="utf-8") as listed:
                json.dump(suites, listed)
            meson = os.path.join(place, "meson")
            with open(meson, "w", encoding="utf-8") as program:
                program.write("#!/bin/sh\ncat '%s/tests.json'\n" % place)
            os.chmod(meson, 0o755)
            ran = subprocess.run(
                [sys.executable, "-B", RUNNER, place, *options], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                env=dict(os.environ, PATH=place + ":" + os.environ["PATH"],
                         PLACE=place))
            self.status, self.said = ran.returncode, ran.stdout
            self.lines = self.said.splitlines()
            self.again = ""
            log = os.path.join(place, "meson-logs", "again.txt")
            if os.path.exists(log):
                with open(log, encoding="utf-8") as text:
                    self.again = text.read()

    def ends(self, line, status):
        return self.lines[-1] == line and self.status == status


def case(title):
    def add(function):
        CASES.append((title, function))
        return function
    return add


ONE = suite("one", tap("ok 1 - a", "ok 2 - b", "1..2"))
TWO = suite("two", ":", protocol="exitcode")
THREE = suite("three", tap("ok 1 - a"))
# Fails in its first run, alongside others, and passes in the second.
FLAKY = ("if [ -e $PLACE/%s ]; then echo 'ok 1 - f'; else : >$PLACE/%s; "
         "echo \"seed $SEED\"; %s; echo 'not ok 1 - f'; exit 1; fi")


def flaky(name, also=":", **more):
    return suite(name, FLAKY % (name, name, also), env={"SEED": "4711"}, **more)


def simple(title, line, status, *suites):
    case(title)(lambda: (lambda r: (r.ends(line, status), r))(Run(suites)))


simple("cases are counted, and suites that name none", "4 passed, 0 failed", 0,
       ONE, TWO, THREE)
simple("what failed twice is counted", "3 passed, 1 failed", 1, ONE, TWO,
       suite("bad", tap("not ok 1 - a") + "; exit 1"))
simple("what was skipped failed", "3 passed, 1 failed", 1, ONE, TWO,
       suite("bad", tap("ok 1 - a # SKIP")))
simple("a suite that died failed", "4 passed, 1 failed", 1, ONE, TWO,
       suite("bad", tap("ok 1 - a") + "; kill -9 $$"))
simple("a suite that takes too long failed", "4 passed, 1 failed", 1, ONE, TWO,
       suite("bad", tap("ok 1 - a") + "; sleep 60", timeout=0.2))
simple("a suite without some of its cases failed", "4 passed, 1 failed", 1, ONE,
       TWO, suite("bad", tap("1..2", "ok 1 - a")))
simple("a suite that ran no case failed", "3 passed, 1 failed", 1, ONE, TWO,
       suite("bad", "echo '1..0 # SKIP'"))
simple("a suite that cannot be started failed", "3 passed, 1 failed", 1, ONE,
       TWO, suite("bad", ":", cmd=["/nonexistent"]))
simple("shards that have all cases", "4 passed, 0 failed", 0, ONE,
       suite("long-0", tap("# shard 0/2: 2 of 3 cases", "ok 1 - a")),
       suite("long-1", tap("# shard 1/2: 1 of 3 cases", "ok 1 - a")))
simple("shards that do not have all cases failed", "4 passed, 1 failed", 1, ONE,
       suite("long-0", tap("# shard 0/2: 1 of 3 cases", "ok 1 - a")),
       suite("long-1", tap("# shard 1/2: 1 of 3 cases", "ok 1 - a")))
simple("cases of shards that were not asked for are not missed",
       "4 passed, 0 failed", 0, ONE, TWO,
       suite("long-0", tap("# shard 0/2: 1 of 3 cases", "ok 1 - a")))


@case("what a failed case said before and after its verdict is printed")
def _():
    run = Run([suite("bad", tap("ok 1 - a", "# before", "not ok 2 - b",
                                "# after", "ok 3 - c") + "; exit 1")])
    return (run.lines.count("    # before") == 1 and
            run.lines.count("    # after") == 1), run


@case("what failed beside others and passes alone is printed, and passes")
def _():
    run = Run([ONE, flaky("odd")])
    return (run.ends("3 passed, 0 failed", 0) and
            "    had failed: odd (exit 1, 1 of 1 cases)" in run.lines and
            "SEED=4711 sh -c" in run.again and "seed 4711" in run.again), run


@case("what failed beside no other is not run again")
def _():
    run = Run([flaky("odd")])
    return (run.ends("0 passed, 1 failed", 1) and
            "FAILED: odd (exit 1, 1 of 1 cases)" in run.lines), run


@case("the third that failed is no chance")
def _():
    two = Run([ONE, flaky("a"), flaky("b")])
    three = Run([ONE, flaky("a"), flaky("b"), flaky("c")])
    return (two.ends("4 passed, 0 failed", 0) and
            three.ends("2 passed, 3 failed", 1)), three


@case("a violation, a sanitizer's report or a crash fails, whatever follows")
def _():
    claim = Run([ONE, flaky("odd", "echo '# CLAIM: two owners'")])
    token = Run([ONE, flaky("odd", "echo 'TOK 3 after 4' >&2")])
    asan = Run([ONE, flaky("odd", "echo '==7==ERROR: AddressSanitizer: x' >&2")])
    tsan = Run([ONE, flaky("odd", "echo 'WARNING: ThreadSanitizer: x' >&2")])
    ubsan = Run([ONE, flaky("odd", "echo 'a.c:1:2: runtime error: x' >&2")])
    crash = Run([ONE, flaky("odd", "kill -SEGV $$")])
    other = Run([ONE, flaky("odd", "echo '# RET: owner 3 is late'")])
    bad = (claim, token, asan, tsan, ubsan, crash)
    return (all(run.ends("2 passed, 1 failed", 1) for run in bad) and
            other.ends("3 passed, 0 failed", 0)), claim


@case("what ran alone is not run again")
def _():
    run = Run([flaky("odd", is_parallel=False)])
    return run.ends("0 passed, 1 failed", 1) and not run.again, run


def most_beside(groups, most):
    """Runs suites that fail if more than `most` of them run at a time."""
    script = ("mkdir $PLACE/in.$$; n=$(ls -d $PLACE/in.* | wc -l); sleep 0.3; "
              "rmdir $PLACE/in.$$; echo ok; test $n -le %d" % most)
    return Run([suite("s%d" % i, script, suite=["holdfast:unit"] + groups)
                for i in range(8)], "--slots", "6")


@case("suites that cost more are fewer at a time")
def _():
    light = most_beside([], 6)
    heavy = most_beside(["holdfast:heavy"], 3)
    computes = most_beside(["holdfast:computes"], 2)
    return all(run.ends("8 passed, 0 failed", 0)
               for run in (light, heavy, computes)), computes


@case("idle processors have more slots, up to a limit, busy ones fewer")
def _():
    least = runner.SLOTS * runner.PROCESSORS
    most = runner.SLOTS_IDLE * runner.PROCESSORS
    after = runner.slots_after
    return (after(least, least, 0.9) == least + 1 and
            after(least + 1, least, 0.9) == least + 2 and  # a heavy one waits
            after(least + 9, least, 0.9) == least + 9 and  # none waits
            after(most, most, 0.9) == most and
            after(least + 3, least + 3, 0.1) == least + 2 and
            after(least, least, 0.0) == least and
            after(least + 3, least + 3, 0.25) == least + 3), None


@case("groups and patterns choose")
def _():
    some = [suite("a", "echo ok", suite=["holdfast:cli", "holdfast:short"]),
            suite("b", "echo ok"),
            suite("c", "echo ok", suite=["holdfast:cli", "holdfast:plain"])]
    return (Run(some, "--only", "short").ends("1 passed, 0 failed", 0) and
            Run(some, "--only", "short", "--only", "unit").ends(
                "2 passed, 0 failed", 0) and
            Run(some, "--without", "plain").ends("2 passed, 0 failed", 0) and
            Run(some, "--pattern", " / [ab]").ends("2 passed, 0 failed", 0) and
            Run(some, "--pattern", "none").ends("0 passed, 1 failed", 1)), None


def main():
    failed = 0
    for number, (title, function) in enumerate(CASES, 1):
        good, run = function()
        failed += not good
        print("%s %d - %s" % ("ok" if good else "not ok", number, title))
        if not good and run:
            print("\n".join("# " + line for line in run.lines))
    print("1..%d" % len(CASES))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
