/*
 * Sales from one stock (stock.h), guarded in every way that the documents
 * describe, as the work of workers. A sale reads the stock and writes one less;
 * the strategies differ in what they do around these two steps.
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
    unsigned stores; /* bits of enum lab_engine */
    enum lab_outcome expected;
    bool threads; /* workers are threads of one process */
    void (*open)(struct worker *worker);
    enum work (*work)(struct worker *worker);
    const char *const *variants;         /* NULL: one, without a name */
    const enum lab_outcome *expected_of; /* variants, if they differ */
};

/* One row. */
struct race {
    struct lab *lab;
    const struct strategy *strategy;
    const struct lab_place *store, *backend;
    const char *variant;
    enum hf_fairness fairness;
    enum lab_outcome expected;
    bool pauses; /* in its first sale each worker waits for another one */
    char lock_name[96];
};

extern const struct strategy sale_strategies[];
extern const char *const sale_names[]; /* all strategies; ends with NULL */
enum { SALE_STRATEGIES = 12 };

/* How large the stock is, and how many workers sell it: so many attempts in
 * all, or as many as fit into run_ms. */
struct sale_size {
    unsigned workers;
    uint64_t stock, attempts;
    int64_t run_ms;
};

/* Creates the stock, sells, and fills in the row: who, where, and the figures
 * of the workers. Returns what is left. */
int64_t sale_run(const struct race *race, const struct sale_size *size,
                 struct workers_result *result, struct lab_row *row);

/* Called if there is no store for the strategy: dies if it was requested by
 * name. */
void sale_lacks_store(struct lab *lab, const struct strategy *strategy);

/* Does it use a lock of holdfast? */
bool sale_is_lock(const struct strategy *strategy);
/* Calls sell_by() for each backend, fair and unfair where it has both. word:
 * part of the names of these locks. */
void sale_each_lock(struct race *race, const char *word,
                    void (*sell_by)(const struct race *race, void *arg),
                    void *arg);

#endif
