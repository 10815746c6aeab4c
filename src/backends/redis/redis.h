/*
 * The Redis backend, inside. One server, up to three pipes (pipe.h):
 *
 *   cmd   every request, in order of submission; answers come in that order
 *   sub   opened when somebody first has to wait, or holds something and
 *         listens; only ever told things
 *   ear   while the program watches names: told of their changes
 *
 * Everything here runs with the client's mutex held, except open(), which runs
 * on the helper thread before that.
 *
 * Files, beside those of a pipe: redis.c the table, the URL; cmd.c requests
 * under way; late_replies.c those that were lost; keys.c names; lua/ the
 * scripts; lock.c what is asked of a lock and answered, kinds.c how it is put
 * into commands, renew.c renewals, replica.c whether replicas have them;
 * subscribe.c channels and bells, channels.c the waiters of each, same_server.c
 * whether both connections end at one server; notify.c holders that are asked;
 * changes.c changes; query.c inspect, list, break, ask; diagnose.c what the
 * server says of itself, judge.c what that means, rights.c what the user may
 * not do; latch.c what is asked of a latch.
 *
 * lua/assemble.py puts numbers that are defined here into the scripts.
 */
#ifndef HF_REDIS_H
#define HF_REDIS_H

#include "backends/common/about.h"
#include "backends/common/table.h"
#include "pipe.h"

#define RD_OWNER_MAX (HF__UUID_LEN + 1 + 20 + 1)
#define RD_KEY_MAX (HF_NAME_MAX + 64) /* a name with the longest prefix */

/*
 * Safety looks, in case an event was lost. The first in the queue and the last
 * look after this, and sooner by up to the jitter: so a lock that is free while
 * they wait is taken within 2 s. A run of hand-overs takes away the first
 * before those behind know that they are; it does not come to the last, who
 * know it since they came. Those between look at random times, the more of them
 * the less often each, up to the bound. All look when the lease of the holder
 * ends, spread by so much for each who waits.
 */
#define RD_LOOK_FIRST 4
#define RD_LOOK_LAST 4
#define RD_LOOK_MS 1900
#define RD_LOOK_JITTER 6 /* a sixth */
#define RD_LOOK_EACH_MS 300
#define RD_LOOK_MAX_MS 50000
#define RD_EXPIRY_SLACK_MS 2
#define RD_EXPIRY_EACH_MS 2
#define RD_EXPIRY_MIN_MS 8
#define RD_EXPIRY_MAX_MS 1900
/* Who has not looked although he should have, and so long ago, is dead or
 * stopped. Of those behind nobody knows it until they are told to come. */
#define RD_LATE_MS 1100
#define RD_ALIVE_MS 3000 /* RD_LOOK_MS + RD_LATE_MS */
/* The queues outlive the last look by this. */
#define RD_KEEP_MS 60000
/* With a shorter lease, or a fixed one, a lock is not handed over: the lease
 * would count from a look long ago. */
#define RD_HAND_MIN_MS 6000
/* A subscription outlives its last waiter by this: who waits once will wait
 * again, and each SUBSCRIBE costs the server as much as an acquire. */
#define RD_LINGER_MS 5000
/* Is the subscription connection still there? Asked while somebody waits. */
#define RD_SUB_PING_MS 30000
#define RD_TOKEN_TTL_MS 86400000LL
#define RD_RENEW_CHUNK 256
/* Of one hold: each is a command in a script, for which everybody waits. */
#define RD_PERMITS_MAX 4095 /* and of all that one script renews */
/* What the server has to tell of, so that names can be watched; and K. */
#define RD_EVENTS_SETTING "notify-keyspace-events"
#define RD_EVENTS_NEEDED "g$lhxe"

struct redis;

/* ---- keys.c ----------------------------------------------------------- */

enum rd_key {
    RD_KEY_LOCK,    /* n itself */
    RD_KEY_TOKEN,   /* redisson_lock_token:{n} */
    RD_KEY_QUEUE,   /* redisson_lock_queue:{n} */
    RD_KEY_TIMEOUT, /* redisson_lock_timeout:{n} */
    RD_KEY_INFO,    /* ours: who holds it */
    RD_KEY_WAITERS, /* ours: unfair waiters, as they came */
    RD_KEY_CROWD,   /* ours: what those say of themselves */
    RD_KEY_SEEN,    /* ours: fair waiters, and until when they live */
    RD_KEY_TOKEN_S, /* ours: the token of the string dialect */
    RD_KEY_HOLDS,   /* ours, not of the mutex: who holds it */
    RD_KEY_LINE,    /* ours, not of the mutex: waiters, as they came */
    RD_KEY_PARTY,   /* ours, not of the mutex: what those say of themselves */
    RD_KEY_KIND,    /* ours: what the string n is */
    RD_KEY_RESERVE, /* ours, of Redlock: which tokens may be in use */
    RD_KEY_DID,     /* ours: the beginning; what was counted already */
    RD_KEY_PERMITS, /* {n}:timeout */
    RD_KEY_BASE,    /* {n}: the beginning of {n}:owner:rwlock_timeout:1 */
    RD_CHANNEL,     /* redisson_lock__channel:{n} */
    RD_MARK,        /* ours: subscribed together with RD_CHANNEL */
    RD_CHANNEL_RW,  /* redisson_rwlock:{n}, and so on */
    RD_MARK_RW,
    RD_CHANNEL_SEM, /* redisson_sc:{n} */
    RD_MARK_SEM,
    RD_CHANNEL_LATCH, /* redisson_countdownlatch__channel__{n} */
};

/* Writes the key, which may be terminated; returns its length, at most
 * RD_KEY_MAX. There has to be room for one more. */
size_t hf__rd_key(char *to, enum rd_key, const char *name, size_t len);
void hf__rd_put_key(struct net_out *, enum rd_key, const char *name,
                    size_t len);
bool hf__rd_reserved(const char *name, size_t len);
/* It is "{m}": there may be an "m". */
bool hf__rd_has_twin(const char *name, size_t len);
/* What a kind's waiters listen to; 0: there is no mark. */
enum rd_key hf__rd_channel(enum hf_kind);
enum rd_key hf__rd_mark(enum hf_kind);

/* ---- lua/ ------------------------------------------------------------- */

enum rd_script {
    RD_TAKE,
    RD_DROP,
    RD_LEAVE,
    RD_TAKE_FAIR,
    RD_DROP_FAIR,
    RD_LEAVE_FAIR,
    RD_RENEW,
    RD_INSPECT,
    RD_LIST,
    RD_BREAK,
    RD_TAKE_RW,
    RD_DROP_RW,
    RD_LEAVE_RW,
    RD_RENEW_RW,
    RD_DOWNGRADE,
    RD_INSPECT_RW,
    RD_BREAK_RW,
    RD_TAKE_SEM,
    RD_DROP_SEM,
    RD_LEAVE_SEM,
    RD_RENEW_SEM,
    RD_INSPECT_STRING, /* a semaphore, or a latch */
    RD_BREAK_STRING,
    RD_WAIT_LATCH,
    RD_LATCH,
    RD_ASK,
    RD_PROVE,
    RD_TAKE_S, /* the string dialect */
    RD_DROP_S,
    RD_LEAVE_S,
    RD_RENEW_S,
    RD_INSPECT_S,
    RD_LIST_S,
    RD_BREAK_S,
    RD_VOTE, /* Redlock */
    RD_RIGHTS,
    RD_SCRIPTS,
};

/* First number of the answer of a TAKE. */
enum rd_take {
    RD_GRANTED = 2, /* now, token */
    RD_QUEUED = 3,  /* now, ms until a look is worth it or -1, foreign, how
                       many wait, whether we are among the first */
    RD_BUSY = 4,    /* now */
    RD_STALE = 5,   /* now: the question came too late to be meant */
    RD_MISMATCH = 6,
};

/* INSPECT, BREAK: the name is of another kind: this and its hf_kind, or this
 * alone. */
#define RD_OTHER 10

/* Made by lua/assemble.py. */
struct rd_text {
    char digest[41]; /* SHA-1, by which EVALSHA names a script */
    uint8_t keys_len;
    uint8_t keys[8]; /* enum rd_key: what its head says */
    size_t len;
    const char *text;
};
extern const struct rd_text hf__rd_script[RD_SCRIPTS];

/* ---- cmd.c ------------------------------------------------------------ */

/* A command that is under way. */
struct rd_flight {
    struct rd_sent sent;
    struct hf__req *req; /* NULL: nobody wants the answer any more */
    const struct hf__remote *remote; /* ATTEMPT; NULL: it is detached */
    uint64_t hold_id;                /* a proof: its number */
    hf__time ahead;                  /* server_ahead when it was sent */
    uint32_t first, len;             /* RENEW: which items */
    uint8_t op;                      /* 0: a proof */
    uint8_t script;
    bool by_text; /* EVAL, not EVALSHA */
};

/* The request is under way (HF__PENDING), or HF__LATER, or a code. Reports
 * nothing. */
typedef int rd_encode_fn(struct redis *, struct hf__req *);
int hf__rd_submit(struct redis *, struct hf__req *, rd_encode_fn *);
/* Writes; and if there is room then, what the core keeps can come. */
void hf__rd_pump(struct redis *);
/* Never mention this request again. */
void hf__rd_forget(struct redis *, struct hf__req *);
/* Nor this remote, whatever of it is under way. */
void hf__rd_forget_remote(struct redis *, const struct hf__remote *);
void hf__rd_finish(struct redis *, struct hf__req *, int result);
/* Begins the command of a script; room for it and `more` is reserved. NULL:
 * out of memory. keys and args follow by hf__rd_put...(). */
struct net_out *hf__rd_call(struct redis *, struct hf__req *, enum rd_script,
                            size_t keys, size_t args, size_t more);
/* The same of a command that is no script, with so many words. If it is
 * refused, that is given to the query as its reply. */
struct net_out *hf__rd_command(struct redis *, struct hf__req *, size_t words,
                               size_t more);
/* hf__rd_call(), and the keys that the script has of a name follow: all but
 * RD_KEY_DID. `more` is for the rest. */
struct net_out *hf__rd_begin(struct redis *, struct hf__req *, enum rd_script,
                             const char *name, size_t len, size_t args,
                             size_t more);
/* What was in doubt is decided: 0, or a code. */
void hf__rd_decided(struct redis *, const struct rd_flight *, int code,
                    hf__time now);
/* That of the command that was begun last. */
struct rd_flight *hf__rd_newest(const struct redis *);
extern const struct rd_owner hf__rd_cmd; /* of r->cmd */

/* ---- late_replies.c
 * ------------------------------------------------------------ */

struct rd_late;
/* This attempt was sent and is lost. */
void hf__rd_late_add(struct redis *, const struct rd_flight *, hf__time now);
/* The hold id is let go, or was refused. */
void hf__rd_late_over(struct redis *, uint64_t hold_id);
void hf__rd_late_move(struct redis *, hf__time now);
hf__time hf__rd_late_timeout(const struct redis *);
void hf__rd_late_fini(struct redis *);

/* ---- lock.c ---------------------------------------------------------- */

#define RD_LEASE_BITS 23 /* 2.3 h; a longer one counts as that */
#define RD_LEASE_MOST ((1u << RD_LEASE_BITS) - 1)

/* What we keep of each line (remote->impl). */
struct rd_link {
    struct hf__remote *remote;
    struct rd_chan *chan; /* NULL: has not waited lately */
    struct rd_link *next; /* of the same chan */
    uint64_t asked_id;    /* the last hold id that was asked for */
    union {
        uint64_t token; /* it was handed to us; 0: it was not */
        uint64_t round; /* latch: which one is waited for; 0: not known */
    };
    hf__time sent_at; /* of the question that was answered last */
    uint32_t seen_ms; /* the low bits of the server's clock then */
    /* The shortest that was asked for under asked_id, or less. */
    uint32_t lease_ms : RD_LEASE_BITS;
    uint32_t polls : 3; /* string dialect: how often, up to a bound */
    bool sent : 1;      /* something of it went out */
    bool asking : 1;    /* remote->ask is with us */
    bool waits : 1;
    bool rang : 1; /* while the question was under way */
    bool own : 1;  /* fair mutex: its own channel is subscribed */
    bool told : 1; /* by a message, and has not asked since */
};
/* Of a handle's 512 bytes. */
_Static_assert(sizeof(struct rd_link) <= 56, "every name has one");

int hf__rd_attach(void *, struct hf__remote *);
void hf__rd_detach(void *, struct hf__remote *);
int hf__rd_attempt(void *, struct hf__req *);
int hf__rd_release(void *, struct hf__req *);
int hf__rd_abandon(void *, struct hf__req *);
/* The answers: 0, or HF_EPROTO. */
int hf__rd_verb_reply(struct redis *, const struct rd_flight *,
                      const struct rd_node *, hf__time now);
/* The attempt is granted: its token is set. */
void hf__rd_grant(struct redis *, struct hf__req *, hf__time now);
/* Remembers what an answer says about the server's clock. */
bool hf__rd_clock(struct redis *, const struct rd_node *, hf__time sent_at);
/* The server's clock until which a question that is sent now is meant: rather
 * too late than too early, so that no question that is meant is refused. 0: the
 * clock is not known. */
int64_t hf__rd_valid_until(const struct redis *, hf__time now);
/* The same for a query or a renewal, rather too early than too late: one that
 * is refused is asked again by the clock that the refusal tells, if it is meant
 * still. 0: it is always meant. */
int64_t hf__rd_meant_until(const struct redis *, const struct hf__req *);

/* ---- kinds.c ----------------------------------------------------------- */

/* Encode into the out buffer: 0 or HF_ENOMEM. */
int hf__rd_verb_encode(struct redis *, struct hf__req *);
enum rd_script hf__rd_script_of(const struct redis *, const struct hf__remote *,
                                enum hf__op);
void hf__rd_put_owner(const struct redis *, struct net_out *, uint64_t hold_id);

/* ---- renew.c ----------------------------------------------------------- */

int hf__rd_renew(void *, struct hf__batch *);
/* Renewals have come, or may be over: how long the server may take. */
void hf__rd_hurry(struct redis *);
bool hf__rd_is_renewing(const struct redis *);
int hf__rd_renew_chunk(struct redis *, struct hf__batch *, uint32_t first,
                       uint32_t len);
/* The answer: 0, or HF_EPROTO. */
int hf__rd_renew_reply(struct redis *, const struct rd_flight *,
                       const struct rd_node *);
/* A chunk is over. */
void hf__rd_renew_landed(struct redis *, struct hf__batch *);
/* No answer will come for these items. */
void hf__rd_renew_failed(struct redis *, const struct rd_flight *, int code);

/* ---- replica.c --------------------------------------------------------- */

/* What the server has granted or renewed, and enough replicas have to have. */
struct rd_doubts {
    uint32_t need; /* so many of them; 0: nothing is in doubt */
    uint32_t ms;   /* replica_timeout */
    bool waiting;  /* WAIT is under way */
    bool wanted;   /* another one is to be sent */
    size_t len, cap;
    struct rd_flight *all;
    /* The answer to WAIT has decided it: 0, or a code. */
    void (*decided)(struct redis *, const struct rd_flight *, int code,
                    hf__time now);
};

int hf__rd_doubt_parse(struct redis *, const struct hf__config *);
/* Room for what is about to be sent, if replicas are asked for; now: WAIT goes
 * with it. 0, HF_ENOMEM. */
int hf__rd_doubt_room(struct redis *, bool now);
/* It was answered, and is not to be reported before replicas have it. False:
 * none are asked for. */
bool hf__rd_doubt(struct redis *, const struct rd_flight *);
void hf__rd_doubt_forget(struct redis *, const struct hf__req *);
/* The connection is lost. */
void hf__rd_doubt_lost(struct redis *, hf__time now);
/* Puts WAIT behind what was sent, if one is wanted and none is under way. */
void hf__rd_doubt_send(struct redis *);
void hf__rd_doubt_fini(struct redis *);

/* ---- subscribe.c ------------------------------------------------------------
 */

/* A name that somebody of ours waits for, or did a moment ago. */
struct rd_chan {
    struct hf__keyed key;        /* its name */
    struct rd_chan *next, *prev; /* while it lingers */
    struct rd_link *links;       /* who waits, or did a moment ago */
    size_t waiting;              /* 0: it lingers */
    hf__time until;              /* lingers until */
    hf__time confirmed_at;       /* its channels; 0: not */
    uint8_t kind;
    bool fair;   /* of the mutex: the others have one channel for both */
    bool joined; /* its channels were asked for */
    bool look;   /* ring when they are confirmed */
};

/* A message for a question whose answer has not come yet: both come by
 * connections of their own, in any order. Kept until it is asked for, until all
 * that was under way is answered, or until so many others have come. */
#define RD_EARLY 64
struct rd_early {
    uint64_t hold_id; /* 0: none */
    size_t last;      /* how many answers there are with the last of those */
    uint64_t token;   /* 0: try */
    uint32_t seen_ms; /* the look by which it got it */
};

/* A proof that both connections end at one server (same_server.c). */
struct rd_pair {
    uint64_t number; /* of the last one */
    hf__time until;  /* it has to be over then; 0: none is under way */
    hf__time again;  /* the next one is due then; 0: none is */
    bool heard, counted;
    bool put_off;  /* the last one was refused for now */
    uint8_t apart; /* how many have failed in a row, up to a bound */
};

struct rd_chans {
    struct hf__table table; /* by name, kind and fairness */
    size_t waiting;
    struct rd_chan *oldest, *newest; /* of those that linger */
    bool confirmed;                  /* our own channel is subscribed */
    struct rd_pair pair;
    bool live;        /* and what is said there is said at cmd's server */
    hf__time live_at; /* since when */
    /* A subscription of this connection was refused: waiters poll. If that may
     * pass, a new connection is made at `again`; 0: it lasts. */
    bool refused;
    hf__time again;
    uint8_t put_off; /* how often in a row it was refused so, up to a bound */
    hf__time early_lost_at; /* one of these had to make room */
    unsigned early_at;      /* the next place */
    struct rd_early early[RD_EARLY];
};

/* channels.c; NULL: there is none, out of memory. */
struct rd_chan *hf__rd_chan_find(const struct redis *, const char *name,
                                 size_t len, enum hf_kind, bool fair);
struct rd_chan *hf__rd_chan_add(struct redis *, const struct hf__remote *);
void hf__rd_chan_linger(struct redis *, struct rd_chan *, hf__time until);
void hf__rd_chan_unlinger(struct redis *, struct rd_chan *);
/* It lingers, and nobody is subscribed by it any more: frees it. */
void hf__rd_chan_forget(struct redis *, struct rd_chan *);
void hf__rd_chan_link(struct rd_chan *, struct rd_link *);
void hf__rd_chan_unlink(struct rd_link *);

/* The remote waits (again). HF_ENOMEM. */
int hf__rd_wait(struct redis *, struct hf__remote *, bool foreign);
void hf__rd_wait_end(struct redis *, struct hf__remote *, hf__time now);
/* Was this one called already? Then it says so: token, if the message is
 * about the look that was answered last, and rang. */
void hf__rd_was_called(struct redis *, struct rd_link *, uint64_t hold_id);
void hf__rd_chan_drop(struct redis *, struct hf__remote *);
struct rd_chan *hf__rd_chan_next(const struct redis *, const struct rd_chan *);
void hf__rd_ring_one(struct redis *, struct rd_link *);
void hf__rd_ring(struct redis *, struct rd_chan *);
/* All waiters look. */
void hf__rd_ring_all(struct redis *);
/* The server does not let us be told: logs why, and all waiters look. */
void hf__rd_deaf(struct redis *, const char *verb, const char *text);
extern const struct rd_owner hf__rd_sub; /* of r->sub */
void hf__rd_sub_move(struct redis *, hf__time now);
hf__time hf__rd_sub_timeout(const struct redis *);
void hf__rd_sub_fini(struct redis *);

/* ---- same_server.c
 * ------------------------------------------------------------ */

/* A connection has come, or a subscription: proves it, if both are there. */
void hf__rd_pair_begin(struct redis *);
/* One of both has gone. */
void hf__rd_pair_end(struct redis *);
void hf__rd_pair_heard(struct redis *, const char *number);
/* True: a new connection for messages is to be made. */
bool hf__rd_pair_move(struct redis *, hf__time now);
hf__time hf__rd_pair_timeout(const struct redis *);

/* ---- notify.c ------------------------------------------------------------ */

/* How often the helper thread looks at the connection while it is being made.
 */
#define RD_MADE_LOOK_MS 20

/* What is kept of each line if the program listens. */
struct rd_held {
    struct rd_link link;         /* must be first: remote->impl is cast */
    struct rd_held *next, *prev; /* redis.held, if it holds something */
    uint64_t hold_id, token;     /* 0: it holds nothing */
};

/* Of what remote->impl points to. */
size_t hf__rd_link_size(const struct redis *);
/* The attempt is granted. */
void hf__rd_held(struct redis *, const struct hf__req *, hf__time now);
/* It is let go; 0: whatever is held. */
void hf__rd_held_end(struct redis *, const struct hf__remote *,
                     uint64_t hold_id);
/* DOWNGRADE. */
void hf__rd_held_move(struct redis *, const struct hf__query *);
/* Somebody asks for it. */
void hf__rd_wished(struct redis *, const char *number);
/* Somebody took it away. */
void hf__rd_broken(struct redis *, const char *numbers);
/* What is said can be believed from now on. */
void hf__rd_held_look(struct redis *);
/* The grant with that token was taken away before it was known here. */
bool hf__rd_was_broken(const struct redis *, const struct hf__req *);

/* ---- changes.c --------------------------------------------------------- */

struct rd_ears {
    struct rd_ear *first;
    bool hears;     /* the settings are right: all were subscribed to */
    bool anew;      /* all were asked for, and not all are confirmed */
    size_t due;     /* confirmations that are to come */
    hf__time again; /* OFF, and somebody listens: it is started then */
};

extern const struct rd_owner hf__rd_ear;
int hf__rd_listen(struct redis *, struct hf__query *);
void hf__rd_unlisten(void *, struct hf__listener *);
void hf__rd_ear_move(struct redis *, hf__time now);
hf__time hf__rd_ear_timeout(const struct redis *);
void hf__rd_ear_fini(struct redis *);
/* This value of the setting is enough. */
bool hf__rd_tells_changes(const char *setting);

/* ---- query.c ---------------------------------------------------------- */

/* What is made of an answer: the query is sent again, as it is now. */
#define RD_AGAIN 100
int hf__rd_query(void *, struct hf__query *);
int hf__rd_query_encode(struct redis *, struct hf__query *);
int hf__rd_query_reply(struct redis *, struct hf__query *,
                       const struct rd_node *);
/* The text as a glob pattern that means itself, and anything after it; up to
 * twice as long and one more. Returns its end. */
char *hf__rd_glob(char *to, const char *text, size_t len);

/* ---- diagnose.c -------------------------------------------------------- */

int hf__rd_diagnose_encode(struct redis *, struct hf__query *);
/* The answer, which may be an error: a code, or HF__PENDING: more is asked. */
int hf__rd_diagnosed(struct redis *, struct hf__query *,
                     const struct rd_node *);

/* ---- rights.c ---------------------------------------------------------- */

#define RD_COMMANDS_MAX 64
/* The text before the rules of a user. */
#define RD_RUN "Run in redis-cli: ACL SETUSER "

enum rd_rules_of { RD_RULES_REDISSON, RD_RULES_STRING, RD_RULES_REDLOCK };

/* Rules for ACL SETUSER, with a blank before each: the keys of names that begin
 * with the prefix (NULL: not these), and all commands; wait: WAIT too. Cut if
 * it is too long. Returns the buffer. */
const char *hf__rd_rules(char *buffer, size_t size, enum rd_rules_of,
                         const char *prefix, bool wait);
struct rd_commands {
    size_t len;
    struct rd_command {
        char word[24];
    } all[RD_COMMANDS_MAX];
};

struct rd_rules {
    char *to;
    size_t size, len;
    bool is_cut;
};

/* The commands of the scripts, and those that are sent without a script. */
void hf__rd_rules_commands(struct rd_commands *, enum rd_rules_of, bool wait);
void hf__rd_rules_put(struct rd_rules *, const char *command);
void hf__rd_rules_put_keys(struct rd_rules *, enum rd_rules_of,
                           const char *prefix, size_t len);
void hf__rd_rules_put_channels(struct rd_rules *, enum rd_rules_of,
                               const char *prefix, size_t len);
int hf__rd_rights_encode(struct redis *, struct hf__query *);
int hf__rd_rights_found(struct redis *, struct hf__query *,
                        const struct rd_node *);

/* ---- latch.c ----------------------------------------------------------- */

/* ATTEMPT. */
int hf__rd_latch_encode(struct redis *, struct hf__req *);
/* LATCH_SET, LATCH_DOWN, LATCH_GET. The answer: a code, HF__PENDING if it was
 * sent again, or HF_EPROTO. */
int hf__rd_count_encode(struct redis *, struct hf__query *);
int hf__rd_count_reply(struct redis *, struct hf__query *,
                       const struct rd_node *);

/* ---- all of it -------------------------------------------------------- */

struct redis {
    const struct hf__core *core;
    hf_client *client;
    bool string_dialect;
    bool keep_tokens;
    bool opened;  /* has been up once */
    bool listens; /* the program hears of events */
    uint32_t op_timeout_ms;
    struct rd_login login;
    struct net_endpoint peer;
    char about[128]; /* "pid\nhost\n" */
    size_t about_len;
    char uuid[HF__UUID_LEN + 1];
    char wake[HF_NAME_MAX + 64]; /* our own channel */
    size_t wake_len;
    uint64_t chance;          /* state of the jitter */
    bool by_text[RD_SCRIPTS]; /* the server has forgotten it: send the text */
    struct rd_pipe cmd, sub, ear;
    uint32_t tags; /* of their descriptors */
    bool put_off;  /* the core keeps requests that are not sent yet */
    struct rd_late *late;
    struct rd_doubts doubts;
    unsigned renewing;       /* batches that are not reported yet */
    uint32_t renew_lease_ms; /* the shortest lease of them, and of one that
                                waits */
    hf__time renew_until;    /* the core keeps that one until we are connected;
                                it is meant until then. 0: it keeps none */
    int64_t server_us;       /* the server's clock at server_at; 0: not known */
    hf__time server_at;
    hf__time server_ahead; /* by how much that is ahead of it, at most */
    struct rd_chans chans;
    struct rd_held *held; /* if the program listens */
    uint64_t wished;      /* a hold that was asked for and is not there */
    uint64_t broken_id, broken_token; /* the last that was broken, as `sub` has
                                         said; 0: none */
    struct rd_ears ears;
};

/* "<uuid>:<hold id>"; returns the length. */
size_t hf__rd_owner(const struct redis *, uint64_t hold_id,
                    char to[RD_OWNER_MAX]);

#endif
