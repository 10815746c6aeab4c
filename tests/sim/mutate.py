#!/usr/bin/env python3
"""Makes broken variants (mutants) of the core.

    mutate.py --list | --list-asserted
    mutate.py lease.c local_queue.c line_set.c out-lease.c out-queue.c out-set.c

Writes lease.c, local_queue.c and line_set.c with every mutant in them: a mutant
has broken copies of the functions that it changes. The environment variable
SIM_MUTANT selects the mutant; without it the correct code runs. Every text to
be replaced must occur exactly once in the core: if a change of the core removes
one, the build fails until this file is updated. The simulation must catch each
mutant; those of ASSERTED must violate an assertion of policy/verify.h.
"""
import re
import sys

LEASE, QUEUE, SET = 0, 1, 2

# name: [(file, right, wrong), ...]
MUTANTS = {
    # the lease
    "deadline-from-receipt": [
        (LEASE, "lease_extend(l, req->sent_at, term_ms);",
         "lease_extend(l, now, term_ms);")],
    "no-margin": [
        (LEASE, "return (hf__time)lease_ms * HF__MS / 100 + 2 * HF__MS;",
         "return (void)lease_ms, 0;")],
    "unknown-is-success": [
        (LEASE, "        l->question = HF__QUESTION_LOST;\n"
         "        return HF__PENDING;",
         "        return l->drop ? HF__PENDING\n"
         "                       : lease_granted(l, req, now, max_hold_ms);")],
    "unknown-is-failure": [
        (LEASE, "        l->question = HF__QUESTION_LOST;\n"
         "        return HF__PENDING;",
         "        l->state = HF__IDLE;\n        l->drop = false;\n"
         "        return req->result;")],
    "lost-answer-is-no-silence": [
        (LEASE, "    if (l->question != HF__QUESTION_LOST)\n", "    if (now)\n")],
    "hold-id-reused": [
        (LEASE, "l->hold_id = ++*ids;", "l->hold_id = *ids + 1;")],
    "late-grant-accepted": [
        (LEASE, "    if (!hf__lease_expired(l, now))\n"
         "        return HF__GRANTED;",
         "    if (now)\n        return HF__GRANTED;")],
    "abandoned-grant-kept": [
        (LEASE, "        l->state = HF__HELD;\n        return HF__PENDING;",
         "        l->state = HF__IDLE;\n        l->drop = false;\n"
         "        return HF__PENDING;")],
    "giving-up-forgets-the-place": [
        (LEASE, "    l->drop = !wanted;",
         "    if (!wanted && l->state == HF__WAITING)\n"
         "        l->state = HF__IDLE;\n    else\n        l->drop = !wanted;")],
    "fixed-lease-renewed": [
        (LEASE, "    if (ends && (!l->fixed || l->session))", "    if (ends)")],
    "max-hold-ignored": [
        (LEASE, "l->max_until = max_hold_ms ?",
         "l->max_until = max_hold_ms && !now ?")],
    "bell-and-look-ignored": [
        (LEASE, "    if (l->question == HF__QUESTION_SENT)\n"
         "        l->question = HF__QUESTION_RANG;\n"
         "    if (l->state == HF__WAITING)",
         "    if (now == HF__NEVER)"),
        (LEASE, "l->poll_at = l->question == HF__QUESTION_RANG ? now : req->poll_at;",
         "l->poll_at = HF__NEVER;")],
    "bell-before-answer-ignored": [
        (LEASE, "l->question == HF__QUESTION_RANG ? now : req->poll_at",
         "req->poll_at")],
    "unsure-release-believed": [
        (LEASE, "if (result != HF__DONE && result != HF_ENOTOWNER &&",
         "if (result == HF_EBACKEND && result != HF_ENOTOWNER &&")],
    "let-go-given-up-early": [
        (LEASE, "        l->gone_at += PLACE;\n",
         "        l->gone_at -= 9 * (l->gone_at - now) / 10;\n")],
    "loss-not-noticed": [
        (LEASE, "    if (result == HF_ENOTOWNER) {\n",
         "    if (result == HF_ENOTOWNER)\n        result = HF__DONE;\n"
         "    if (result == HF_EBUSY) {\n")],
    "renewal-from-receipt": [
        (LEASE, "mixed ? l->least : lease_end_of(sent_at, lease_ms);",
         "mixed ? l->least : lease_end_of(now, lease_ms);")],
    "last-answer-taken-for-the-last-renewal": [
        (LEASE, "mixed ? l->least : lease_end_of(sent_at, lease_ms);",
         "lease_end_of(sent_at, lease_ms);")],
    "session-takes-the-lease-for-its-own": [
        (LEASE, "term_ms = l->session ? req->session_ms : l->lease_ms;",
         "term_ms = l->lease_ms;")],
    "session-keeps-a-fixed-lease-for-ever": [
        (LEASE, "    if (l->fixed && l->session)\n",
         "    if (l->fixed && l->session && !now)\n")],
    "session-forgets-what-is-let-go": [
        (LEASE, "    if (l->session ||\n        (l->endless", "    if ((l->endless")],
    # refusals
    "refused-let-go-pauses": [
        (LEASE, "        l->resend_at = hf__min_time(l->resend_at, now);",
         "        (void)now;")],
    "refused-let-go-not-told": [
        (QUEUE, "    queue_refuse(g, HF__TODO_LET_GO, result, wake);\n", "")],
    "try-behind-a-let-go-is-busy": [
        (QUEUE, "    return g->owner || !hf__lease_unanswered(&g->lease);",
         "    return g->head || g->owner || g->lease.state != HF__IDLE;")],
    "every-refusal-did-nothing": [
        (LEASE, "        lease_may_know(l, req);\n        l->drop =", "        l->drop =")],
    "refused-place-forgotten": [
        (LEASE, "l->drop = l->known != HF__KNOWN_NOT;",
         "l->drop = !req->untouched;")],
    "lost-question-did-nothing": [
        (LEASE, "        lease_may_know(l, req);\n        l->question", "        l->question")],
    "refusal-that-did-nothing-abandoned": [
        (LEASE, "l->drop = l->known != HF__KNOWN_NOT;", "l->drop = true;")],
    "old-refusal-told": [
        (QUEUE, "while (g->head && (g->head->covered & what))",
         "while (g->head)")],
    "patience-of-an-earlier-wait": [
        (LEASE, "        l->silent_at = HF__NEVER;\n    } else",
         "    } else")],
    "taken-up-again-and-not-asked": [
        (QUEUE, "    if (dropped && !g->lease.drop)", "    if (dropped && !now)")],
    "try-waits-behind-a-grant": [
        (QUEUE, "    queue_finish(g, w, HF__GRANTED, wake);\n    queue_refuse_tries(g, wake);",
         "    queue_finish(g, w, HF__GRANTED, wake);")],
    # the queue
    "reentry-not-counted": [
        (QUEUE, "        if (--g->count)\n", "        if (--g->count > 9)\n")],
    "hand-over-without-end": [
        (QUEUE, "    g->turns--;\n", "")],
    "release-by-anybody": [
        (QUEUE, "    if (g->owner == owner && queue_holds(g, now)) {\n"
         "        if (--g->count)",
         "    if (g->owner && queue_holds(g, now)) {\n        if (--g->count)")],
    "cancelled-and-granted": [
        (QUEUE, "        return w->result;\n    queue_take_out(g, w);",
         "        return code;\n    queue_take_out(g, w);")],
    "nobody-roused": [
        (QUEUE, "    g->head->roused = true;\n    wake(g, g->head);", "")],
    "turn-left-lying": [
        (QUEUE, "    if (w && !w->fixed && !w->is_async)\n        queue_rouse",
         "    if (w)\n        queue_rouse")],
    "max-hold-of-the-first": [
        (QUEUE, "    hf__lease_cap(&g->lease, now, w->max_hold_ms);\n",
         "    (void)now;\n")],
    "lost-owner-forgotten": [
        (QUEUE, "i < HF__LOST_MAX - 1 && g->lost[i].count; i++",
         "i < HF__LOST_MAX - 1; i++")],
    "try-queues": [
        (QUEUE, "rc == HF__BUSY || (req->result == HF__QUEUED &&",
         "rc == HF__BUSY || (req->result == HF_EBUSY &&"),
        (QUEUE, "if (g->lease.hold_id != last)", "if (last || !last)")],
    "expired-hold-goes-on": [
        (QUEUE, "    if (!hf__lease_expired(&g->lease, now))\n"
         "        return true;\n", "    if (now)\n        return true;\n")],
    "wanted-by-nobody": [
        (QUEUE, "    if (!g->head)\n        g->lease.wanted = false;\n", "")],
    "turn-for-a-fixed-lease": [
        (QUEUE, "g->turns && !w->fixed &&\n           queue_holds", "g->turns &&\n"
         "           queue_holds"),
        (QUEUE, "if (!w || !g->turns || g->lease.fixed || w->fixed)",
         "if (!w || !g->turns || g->lease.fixed)")],
    # readers
    "joined-after-its-time": [
        (QUEUE, "g->owner && now < g->join_until && !l->drop",
         "g->owner && !l->drop")],
    "joined-while-it-goes": [
        (QUEUE, "g->shared && g->owner && now < g->join_until && !l->drop &&",
         "g->shared && g->lease.state != HF__IDLE && now < g->join_until &&"),
        (QUEUE, "    g->owner = 0;\n    hf__lease_drop(&g->lease);\n"
         "    queue_rethink(g);\n    return HF__DONE;",
         "    g->owner = 0;\n    if (!hf__lease_lets_go(&g->lease))\n"
         "        hf__lease_drop(&g->lease);\n    return HF__DONE;")],
    "joined-for-a-fixed-lease": [
        (QUEUE, "l->max_until == HF__NEVER && !queue_alone(w) &&",
         "l->max_until == HF__NEVER &&")],
    "shared-by-those-with-an-end": [
        (QUEUE, "while (g->head && !just_one && !queue_alone(g->head));",
         "while (g->head && !just_one);"),
        (QUEUE, "g->head && !w->is_try && !queue_alone(w) && !queue_alone(g->head) &&",
         "g->head && !w->is_try && !queue_alone(g->head) &&")],
    "lost-reader-not-told": [
        (QUEUE, "            r->lost = true;\n", "            r->lost = r->lost;\n")],
    "first-reader-takes-it-away": [
        (QUEUE, "    if (--g->count)\n        return HF__PENDING;\n"
         "    g->owner = 0;\n    hf__lease_drop", "    g->count--;\n"
         "    g->owner = 0;\n    hf__lease_drop")],
    "last-reader-keeps-it": [
        (QUEUE, "    g->owner = 0;\n    hf__lease_drop(&g->lease);\n"
         "    queue_rethink(g);\n    return HF__DONE;",
         "    g->owner = 0;\n    return HF__DONE;")],
    "reentry-of-readers-not-counted": [
        (QUEUE, "        r->count++;\n", "")],
    "entry-forgotten": [
        (QUEUE, "    g->left = w->reader;\n", "")],
    # latches
    "latch-held": [
        (QUEUE, "    hf__lease_gone(&g->lease, now);\n    g->lease.drop = false;\n",
         "    (void)now;\n    g->lease.drop = false;\n")],
    "latch-joined-while-asking": [
        (QUEUE, "(g->shared && g->lease.state == HF__ATTEMPTING)) &&",
         "g->lease.state == HF__ATTEMPTING) &&")],
    "latch-lets-late-comers-through": [
        (QUEUE, "        if (all || w->known)\n", "        if (all || w)\n")],
    "latch-at-0-keeps-late-comers": [
        (QUEUE, "is_zero || g->lease.known < HF__KNOWN_QUEUED;",
         "g->lease.known < HF__KNOWN_QUEUED;")],
    "latch-let-go": [
        (QUEUE, "if (g->latch && g->lease.state == HF__HELD) {",
         "if (g->latch && rc == HF__GRANTED) {")],
    # downgrade
    "downgrade-not-renewed": [
        (LEASE, "        to->renew_at = now;\n",
         "        to->renew_at = from->renew_at;\n")],
    "downgrade-in-two-places": [
        (LEASE, "    hf__lease_gone(from, now);\n", "")],
    "downgrade-forgets-the-end": [
        (LEASE, "    *to = *from;\n",
         "    *to = *from;\n    to->max_until = HF__NEVER;\n    to->fixed = false;\n")],
    "downgrade-not-counted": [
        (QUEUE, "    r->count = from->count;\n", "")],
    # which line
    "upgrade-waits-for-itself": [
        (SET, "    *out = n ? n : line_set_take(s, s->first);\n    if (!n)\n",
         "    *out = line_set_take(s, s->first);\n    if (s)\n")],
    "read-within-a-write-apart": [
        (SET, "    if (hf__queue_knows(s->first->queue, w->owner))\n",
         "    if (!s)\n")],
    "readers-line-forgotten": [
        (SET, "    *out = line_set_of_reader(s, w->owner);\n", "    *out = NULL;\n")],
    "line-in-use-taken": [
        (SET, "    if (hf__queue_unused(g))\n",
         "    if (!g->head)\n")],
    "ever-more-lines": [
        (SET, "line_set_is_for(n, mode) && hf__queue_stuck(n->queue)",
         "line_set_is_for(n, mode) && !n->queue")],
}

ASSERTED = {
    "max-hold-without-a-deadline": [
        (LEASE, "now + max_hold_ms * HF__MS : HF__NEVER;\n    lease_set_deadline(l);",
         "now + max_hold_ms * HF__MS : HF__NEVER;")],
    "let-go-refused-before-it-was-sent": [
        (LEASE, "    l->refusals = 0;\n", "")],
    "let-go-of-the-present-question": [
        (LEASE, "l->hold_id = ++*ids;", "l->hold_id = *ids ? *ids : ++*ids;")],
    "idle-and-to-be-let-go": [
        (LEASE, "        l->state = HF__IDLE;\n        l->drop = false;\n",
         "        l->state = HF__IDLE;\n")],
    "fixed-lease-with-a-renewal": [
        (LEASE, "    if (ends && (!l->fixed || l->session))\n", "    if (ends)\n")],
    "owner-that-counts-nothing": [
        (QUEUE, "    g->owner = owner;\n    g->count = 1;\n",
         "    g->owner = owner;\n")],
    "reader-that-counts-twice": [
        (QUEUE, "    g->owner = HF__READERS;\n    g->count++;\n",
         "    g->owner = HF__READERS;\n    g->count += 2;\n")],
    "question-of-nobody": [
        (QUEUE, "    hf__lease_want(&g->lease, g->head != NULL);\n",
         "    if (g->head)\n        hf__lease_want(&g->lease, true);\n")],
    "free-turn-that-nobody-takes": [
        (QUEUE, "        queue_rouse(g, wake);\n    else\n",
         "        queue_rouse(g, wake);\n    else if (!w)\n")],
    "roused-and-forgotten": [
        (QUEUE, "    if (w->roused)\n        g->waking = false;\n", "")],
    "line-in-another-list": [
        (SET, "    n->place = (uint8_t)place;\n",
         "    n->place = HF__TAKEN;\n")],
    "line-in-two-lists": [
        (SET, "    hf__list_remove(s->at[n->place], n);\n",
         "    if (n->next)\n        hf__list_remove(s->at[n->place], n);\n")],
}
ALL = {**MUTANTS, **ASSERTED}

# Written at the beginning of each file; selects the mutant.
CHOICE = """#include <stdlib.h>
#include <string.h>

static int mutant = -1;

__attribute__((constructor)) static void choose_mutant(void)
{
    static const char *const names[] = {%s};
    const char *name = getenv("SIM_MUTANT");

    for (size_t i = 0; name && i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(name, names[i]))
            mutant = (int)i;
}

""" % ", ".join('"%s"' % name for name in ALL)

FUNCTION = re.compile(r"^(\w[^\n;{}]*\([^;{}]*\))\n\{\n.*?^\}\n", re.M | re.S)


def function_around(text, at, end):
    for found in FUNCTION.finditer(text):
        if found.start() <= at and end <= found.end():
            return found
    return None


def variant(signature, name, n):
    """Returns the head of the n-th variant of a function, and a call of it."""
    parameters = signature[signature.index("(") + 1:-1]
    names = [re.findall(r"\w+", p)[-1] for p in parameters.split(",")]
    if names == ["void"]:
        names = []
    head = re.sub(r"^(static )?(inline )?", "static ", signature)
    head = head.replace(name + "(", "%s_mutant_%d(" % (name, n), 1)
    call = "%s_mutant_%d(%s);" % (name, n, ", ".join(names))
    if head.startswith("static void "):
        return head, call + " return;"
    return head, "return " + call


def broken(source, changes):
    """Returns the file with all mutants. changes: of each mutant, the broken bodies of the
    functions that it changes, by their offsets."""
    def with_variants(found):
        whole, signature = found.group(0), found.group(1)
        body = whole[len(signature):]
        name = re.search(r"(\w+)\(", signature).group(1)
        before, calls = signature + ";\n", ""
        for n, bodies in enumerate(changes):
            if found.start() not in bodies:
                continue
            head, call = variant(signature, name, n)
            before += head + bodies[found.start()] + "\n"
            calls += "    if (mutant == %d) { %s }\n" % (n, call)
        if not calls:
            return whole
        return before + signature + body.replace("{\n", "{\n" + calls, 1)
    return CHOICE + FUNCTION.sub(with_variants, source)


def bodies_of(mutant, which, source, path):
    """Returns the broken bodies of the functions that a mutant changes, by their offsets."""
    bodies = {}
    for right, wrong in [m[1:] for m in ALL[mutant] if m[0] == which]:
        at = source.find(right)
        found = function_around(source, at, at + len(right))
        if source.count(right) != 1 or not found:
            sys.exit("mutate.py: %s: a function of %s must have this text"
                     " exactly once; follow its change:\n%s" % (mutant, path, right))
        body = bodies.get(found.start(), found.group(0)[len(found.group(1)):])
        bodies[found.start()] = body.replace(right, wrong)
    return bodies


def main(argv):
    if argv[1:] == ["--list"]:
        print("\n".join(MUTANTS))
        return 0
    if argv[1:] == ["--list-asserted"]:
        print("\n".join(ASSERTED))
        return 0
    for which, path in enumerate(argv[1:4]):
        with open(path, encoding="utf-8") as f:
            source = f.read()
        changes = [bodies_of(m, which, source, path) for m in ALL]
        with open(argv[4 + which], "w", encoding="utf-8") as f:
            f.write(broken(source, changes))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
