/*
 * The server's clock, by which leases and requests end: what it was when it was
 * last heard of, and from when on a request is not meant any more. The estimate
 * errs on the safe side: a request ends rather too early than too late. The
 * client's mutex is held.
 */
#ifndef HF_MYSQL_CLOCK_H
#define HF_MYSQL_CLOCK_H

#include "mysql.h"

#define MY_NOW "utc_timestamp(6)"
/* Is past: 0 is refused by some sql_modes. */
#define MY_PAST "'1970-01-02'"
/* The server's clock in us. */
#define MY_CLOCK "timestampdiff(microsecond,'1970-01-01',utc_timestamp(6))"

/* A lease that ends later than its own length from now can only be there
 * because the server's clock was set back. sysdate() is when the row is
 * read, in the session's time zone: behind a proxy that shares sessions it may
 * not be ours, and nothing is odd then. */
#define MY_ODD                                                                 \
    "(@@session.time_zone='+00:00' and "                                       \
    "lease_until>sysdate(6)+interval lease_us+10000000 microsecond)"

/* An answer says that it was this, when it was answered. */
void hf__my_clock(struct mysql *, uint64_t us);
/* From when on, by that clock, a request is not meant any more. */
uint64_t hf__my_late(const struct mysql *, const struct hf__req *);

#endif
