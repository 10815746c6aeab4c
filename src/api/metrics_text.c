/* hf_metrics_text(): the text format of Prometheus, version 0.0.4. */
#include "base/error.h"
#include "base/text.h"

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct text {
    char *at; /* NULL if only the length is counted */
    size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void
metrics_put(struct text *t, const char *fmt, ...)
{
    size_t room = t->len < t->size ? t->size - t->len : 0;
    va_list ap;

    va_start(ap, fmt);
    t->len += (size_t)vsnprintf(room ? t->at + t->len : NULL, room, fmt, ap);
    va_end(ap);
}

/* ---- labels ------------------------------------------------------------ */

static void metrics_put_value(struct text *t, const char *value)
{
    for (size_t n; *value; value += n ? n : 1) {
        n = hf__character((const unsigned char *)value, 4);
        if (*value == '\n')
            metrics_put(t, "\\n");
        else if (!n) /* "\xNN", whose backslash must be escaped */
            metrics_put(t, "\\\\x%02x", (unsigned char)*value);
        else
            metrics_put(t, *value == '"' || *value == '\\' ? "\\%.*s" : "%.*s",
                        (int)n, value);
    }
}

/* Writes the labels of the series and, unless key is NULL, the label `key`. */
static void metrics_put_labels(struct text *t, const hf_series *s,
                               const char *key, const char *value)
{
    const char *before = "{";

    for (size_t i = 0; i < s->labels_len; i++, before = ",") {
        metrics_put(t, "%s%s=\"", before, s->labels[i].name);
        metrics_put_value(t, s->labels[i].value);
        metrics_put(t, "\"");
    }
    if (key)
        metrics_put(t, "%s%s=\"%s\"", before, key, value);
    if (key || s->labels_len)
        metrics_put(t, "}");
}

static bool metrics_is_label_name(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return *name && (*name < '0' || *name > '9') &&
           strspn(name, letters) == strlen(name);
}

static const char *metrics_find_label(const hf_series *s, size_t len,
                                      const char *name)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(s->labels[i].name, name) == 0)
            return s->labels[i].value;
    return NULL;
}

static int metrics_check_labels(const hf_series *s, hf_error *err)
{
    if (s->labels_len && !s->labels)
        return hf__fail(err, HF_EINVAL, "labels is NULL");
    for (size_t i = 0; i < s->labels_len; i++) {
        const char *name = s->labels[i].name;

        if (!name || !s->labels[i].value)
            return hf__fail(err, HF_EINVAL, "the %s of label %zu is NULL",
                            name ? "value" : "name", i);
        if (!metrics_is_label_name(name))
            return hf__fail(err, HF_EINVAL,
                            "the label name \"%s\" is not valid; it must "
                            "consist of letters, digits and \"_\", and not "
                            "begin with a digit",
                            hf__show(name).text);
        if (strncmp(name, "__", 2) == 0 || strcmp(name, "le") == 0 ||
            strcmp(name, "result") == 0)
            return hf__fail(err, HF_EINVAL,
                            "the label name \"%s\" is reserved; choose "
                            "another one",
                            hf__show(name).text);
        if (metrics_find_label(s, i, name))
            return hf__fail(err, HF_EINVAL, "the label \"%s\" is given twice",
                            hf__show(name).text);
    }
    return 0;
}

static bool metrics_is_labelled_like(const hf_series *a, const hf_series *b)
{
    if (a->labels_len != b->labels_len)
        return false;
    for (size_t i = 0; i < a->labels_len; i++) {
        const char *value =
            metrics_find_label(b, b->labels_len, a->labels[i].name);

        if (!value || strcmp(value, a->labels[i].value) != 0)
            return false;
    }
    return true;
}

static int metrics_check(const hf_series *series, size_t n, hf_error *err)
{
    if (!series || !n)
        return hf__fail(err, HF_EINVAL, "no series were given");
    for (size_t i = 0; i < n; i++) {
        const hf_metrics *m = series[i].metrics;
        int rc;

        if (!m || m->size != sizeof(*m))
            return hf__fail(err, HF_EINVAL,
                            "the metrics of series %zu were not filled by "
                            "hf_client_metrics()",
                            i);
        rc = metrics_check_labels(&series[i], err);
        if (rc)
            return rc;
        for (size_t j = 0; j < i; j++)
            if (metrics_is_labelled_like(&series[j], &series[i]))
                return hf__fail(err, HF_EINVAL,
                                "series %zu and %zu have the same labels", j,
                                i);
    }
    return 0;
}

/* ---- families ---------------------------------------------------------- */

struct sample {
    const char *family;
    const char *result; /* the value of a label, or NULL */
    size_t offset;      /* where the number is in hf_metrics */
    const char *type;   /* set in the first sample of a family */
    const char *help;
};

#define AT(field) offsetof(hf_metrics, field)

/* The samples of a family must be next to each other. */
static const struct sample samples[] = {
    {"holdfast_acquires_total", "granted", AT(granted), "counter",
     "Finished acquires, by result."},
    {"holdfast_acquires_total", "busy", AT(busy), NULL, NULL},
    {"holdfast_acquires_total", "timed_out", AT(timed_out), NULL, NULL},
    {"holdfast_acquires_total", "cancelled", AT(cancelled), NULL, NULL},
    {"holdfast_acquires_total", "failed", AT(failed), NULL, NULL},
    {"holdfast_releases_total", NULL, AT(released), "counter",
     "Acquires that were released."},
    {"holdfast_holds_lost_total", NULL, AT(lost), "counter",
     "Holds that ended without a release."},
    {"holdfast_renewals_total", "confirmed", AT(renewed), "counter",
     "Renewals of holds, by result."},
    {"holdfast_renewals_total", "failed", AT(renewals_failed), NULL, NULL},
    {"holdfast_disconnects_total", NULL, AT(disconnects), "counter",
     "Times the connection to the server was lost."},
    {"holdfast_reconnects_total", NULL, AT(reconnects), "counter",
     "Times the connection to the server was regained."},
    {"holdfast_held", NULL, AT(held), "gauge", "Holds at present."},
    {"holdfast_waiting", NULL, AT(waiting), "gauge",
     "Acquires that are waiting now."},
};

static void metrics_put_head(struct text *t, const char *family,
                             const char *type, const char *help)
{
    metrics_put(t, "# HELP %s %s\n# TYPE %s %s\n", family, help, family, type);
}

static void metrics_put_sample(struct text *t, const hf_series *s,
                               const char *name, const char *key,
                               const char *label, uint64_t value)
{
    metrics_put(t, "%s", name);
    metrics_put_labels(t, s, key, label);
    metrics_put(t, " %llu\n", (unsigned long long)value);
}

static void metrics_put_numbers(struct text *t, const hf_series *series,
                                size_t n)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
        const struct sample *s = &samples[i];

        if (s->type)
            metrics_put_head(t, s->family, s->type, s->help);
        for (size_t j = 0; j < n; j++)
            metrics_put_sample(
                t, &series[j], s->family, s->result ? "result" : NULL,
                s->result,
                *(const uint64_t *)((const char *)series[j].metrics +
                                    s->offset));
    }
}

/* A number of seconds as a decimal fraction, independent of the locale. */
struct seconds {
    char text[32];
};

static struct seconds metrics_seconds(uint64_t count, uint64_t per_second,
                                      int digits)
{
    struct seconds s;
    size_t len =
        (size_t)snprintf(s.text, sizeof(s.text), "%llu.%0*llu",
                         (unsigned long long)(count / per_second), digits,
                         (unsigned long long)(count % per_second));

    while (s.text[len - 1] == '0')
        s.text[--len] = '\0';
    if (s.text[len - 1] == '.')
        s.text[--len] = '\0';
    return s;
}

#define WAIT "holdfast_wait_seconds"

static void metrics_put_waits(struct text *t, const hf_series *s)
{
    const hf_metrics *m = s->metrics;

    for (size_t i = 0; i < HF_WAIT_BUCKETS; i++)
        metrics_put_sample(t, s, WAIT "_bucket", "le",
                           metrics_seconds(m->wait[i].le_us, 1000000, 6).text,
                           m->wait[i].count);
    metrics_put_sample(t, s, WAIT "_bucket", "le", "+Inf", m->granted);
    metrics_put(t, WAIT "_sum");
    metrics_put_labels(t, s, NULL, NULL);
    metrics_put(t, " %s\n",
                metrics_seconds(m->wait_sum_ns, 1000000000, 9).text);
    metrics_put_sample(t, s, WAIT "_count", NULL, NULL, m->granted);
}

int hf_metrics_text(const hf_series *series, size_t n, char *buf, size_t size,
                    hf_error *err)
{
    struct text t = {buf, buf ? size : 0, 0};
    int rc = metrics_check(series, n, err);

    if (rc)
        return rc;
    metrics_put_numbers(&t, series, n);
    metrics_put_head(&t, WAIT, "histogram",
                     "Time from the call of acquire to the grant.");
    for (size_t i = 0; i < n; i++)
        metrics_put_waits(&t, &series[i]);
    if (t.len > INT_MAX)
        return hf__fail(err, HF_EINVAL,
                        "the text has %zu bytes; at most %d are supported",
                        t.len, INT_MAX);
    return (int)t.len;
}
