/*
 * Sales from one stock (stock.h), which workers make and which are guarded in
 * every way that the documents (tutorials; see lab/README.md) describe. A sale
 * reads the stock and writes one less; the strategies differ in what they do
 * around these two steps.
 */
#ifndef HF_LAB_SALE_H
#define HF_LAB_SALE_H

#include "../actors/workers.h"
#include "../runner/place.h"
#include "../runner/report.h"

#include <holdfast.h>
#include <stdbool.h>

struct lab;

enum {
    ON_FILE = 1 << LAB_FILE,
    ON_REDIS = 1 << LAB_REDIS,
    ON_MARIADB = 1 << LAB_MARIADB,
};

struct strategy {
    const char *name;
    unsigned stores; /* ON_FILE, ON_REDIS, ON_MARIADB */
    enum lab_outcome expected;
    bool threads; /* workers are threads of one process */
    void (*open)(struct worker *worker);
    enum work (*work)(struct worker *worker);
    const char *const *variants;         /* NULL: there is only one variant,
                                            without a name */
    const enum lab_outcome *expected_of; /* the expected outcome of each
                                            variant, if the outcomes differ */
};

/* One row. */
struct race {
    struct lab *lab;
    const struct strategy *strategy;
    const struct lab_place *store, *backend;
    const char *variant;
    enum hf_fairness fairness;
    enum lab_outcome expected;
    bool pauses; /* in its first sale each worker waits for another worker */
    char lock_name[96];
};

extern const struct strategy sale_strategies[];
extern const char *const sale_names[]; /* all strategies; ends with NULL */
enum { SALE_STRATEGIES = 12 };

/* The size of the stock, the number of workers that sell it, and when they
 * stop: after `attempts' tries to sell in all, or after run_ms if `attempts' is
 * 0. */
struct sale_size {
    unsigned workers;
    uint64_t stock, attempts;
    int64_t run_ms;
};

/* Creates the stock, sells, and fills in the row: the strategy, the places, and
 * the figures of the workers. Returns what is left. */
int64_t sale_run(const struct race *race, const struct sale_size *size,
                 struct workers_result *result, struct lab_row *row);

/* Called if there is no store for the strategy. Dies if the strategy was
 * requested by name. */
void sale_lacks_store(struct lab *lab, const struct strategy *strategy);

/* Returns whether the strategy uses a lock of holdfast. */
bool sale_is_lock(const struct strategy *strategy);
/* Calls sell_by() for each backend: with a fair and with an unfair lock, as far
 * as the backend has them. `word' becomes part of the names of these locks. */
void sale_each_lock(struct race *race, const char *word,
                    void (*sell_by)(const struct race *race, void *arg),
                    void *arg);

#endif
