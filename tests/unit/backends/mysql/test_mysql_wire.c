/* Statements and the answers to them, from correct and from hostile servers. */
#include "mysql_fixture.h"

#define CASE_HERE(fn) CASE_WITH(fn, begin, end, struct scene *t)

CASE_HERE(test_statements_are_packets)
{
    char got[512];
    struct flight *a;

    log_in(t);
    hf__my_begin(&t->c);
    hf__my_sql(&t->c, "a %x b %h c %u d %s e %% f", "\0\xff'x", (size_t)4,
               "\x7f", (size_t)1, UINT64_MAX, "g'h");
    hf__my_sql(&t->c, ";%x", "", (size_t)0);
    a = hf__my_end(&t->c, answered);
    assert_non_null(a);
    assert_int_equal(a->number, 0);
    assert_true(a->sent.sent.at == clock_ns);
    assert_non_null(submit(t, 7));
    assert_true(hears_nothing(t)); /* nothing is sent before a flush */
    hf__net_flush(&t->c.link.stream);
    hears(t, 0, got, sizeof(got));
    assert_string_equal(got, "\3a x'00ff2778' b 7f c 18446744073709551615 d "
                             "g'h e % f;x''");
    hears(t, 0, got, sizeof(got));
    assert_string_equal(got, "\3do 7");
    assert_int_equal(t->c.sents.len, 2);
}

CASE_HERE(test_statement_that_is_too_long)
{
    size_t size = (16u << 20) - 2, out; /* plus the command byte */
    char *text = malloc(size);

    assert_non_null(text);
    memset(text, 'x', size);
    log_in(t);
    assert_non_null(submit(t, 1));
    out = t->c.link.stream.out.len;
    for (size_t less = 0; less < 2; less++) {
        hf__my_begin(&t->c);
        hf__my_put(&t->c, text, size - less);
        if (less)
            assert_non_null(hf__my_end(&t->c, answered));
        else
            assert_null(hf__my_end(&t->c, answered));
        assert_int_equal(t->c.link.stream.out.len,
                         out + (less ? 4 + 1 + size - 1 : 0));
    }
    assert_int_equal(t->c.sents.len, 2);
    free(text);
}

#define COLUMN "\3def\0\0\0\1a\0\x0c\x2d\0\1\0\0\0\xfd\0\0\0\0\0"
#define END(status) "\xfe\0\0" status "\0"

/* An answer of three results: rows with NULL and an empty string, an OK packet,
 * and an error. */
static const char chain[] = "\1\0\0\1\2" /* two columns */
                            "\x17\0\0\2" COLUMN "\x17\0\0\3" COLUMN /* */
                            "\5\0\0\4" END("\2")                    /* */
    "\6\0\0\5\4abcd\xfb"                                            /* */
    "\3\0\0\6\1e\0"                                                 /* */
    "\5\0\0\7" END("\x0a")                   /* more results */
    "\x0a\0\0\x08\0\xfc\xe8\3\5\x0a\0\0\0\0" /* 1000 rows, id 5, more */
    "\x0f\0\0\x09\xff\x28\4#42000no way"     /* 1064 */
    ;

CASE_HERE(test_packets_are_cut_anywhere)
{
    size_t len = sizeof(chain) - 1;

    log_in(t);
    for (size_t cut = 1; cut < len; cut++) {
        assert_non_null(submit(t, 1));
        assert_non_null(submit(t, 2));
        says_raw(t, chain, cut);
        assert_string_equal(t->answers, "");
        assert_true(t->c.link.awaits);
        says_raw(t, chain + cut, len - cut);
        assert_true(t->c.link.awaits);
        SAYS(t, 1, OK_PACKET);
        assert_string_equal(
            t->answers, "1:(abcd,NULL)(e,''); done 1000 5; error 1064 no way\n"
                        "2:done 0 0\n");
        assert_false(t->c.link.awaits);
        t->answers[0] = '\0';
        hf__net_flush(&t->c.link.stream);
    }
    assert_int_equal(t->downs, 0);
}

CASE_HERE(test_packets_come_byte_by_byte)
{
    log_in(t);
    assert_non_null(submit(t, 1));
    for (size_t i = 0; i < sizeof(chain) - 1; i++)
        says_raw(t, chain + i, 1);
    assert_string_equal(
        t->answers, "1:(abcd,NULL)(e,''); done 1000 5; error 1064 no way\n");
}

CASE_HERE(test_error_ends_rows)
{
    log_in(t);
    assert_non_null(submit(t, 1));
    SAYS(t, 1, "\1");
    SAYS(t, 2, COLUMN);
    SAYS(t, 3, END("\2"));
    SAYS(t, 4, "\1x");
    SAYS(t, 5, "\xff\x25\5#70100Query\nkilled");
    assert_string_equal(t->answers, "1:(x)error 1317 Query?killed\n");
    assert_int_equal(t->downs, 0);
}

CASE_HERE(test_many_are_under_way)
{
    log_in(t);
    for (int i = 0; i < 100; i++)
        assert_non_null(submit(t, i % 10));
    hf__net_flush(&t->c.link.stream);
    for (int i = 0; i < 100; i++) {
        char wanted[32];

        t->answers[0] = '\0';
        SAYS(t, 1, "\0\1\7\2\0\0\0");
        snprintf(wanted, sizeof(wanted), "%d:done 1 7\n", i % 10);
        assert_string_equal(t->answers, wanted);
    }
    assert_int_equal(t->c.sents.len, 0);
}

/* Sequence numbers wrap after 255. */
CASE_HERE(test_many_rows)
{
    log_in(t);
    assert_non_null(submit(t, 1));
    SAYS(t, 1, "\1");
    SAYS(t, 2, COLUMN);
    SAYS(t, 3, END("\2"));
    for (unsigned i = 0; i < 1000; i++)
        SAYS(t, (4 + i) & 255, "\0");
    SAYS(t, (4 + 1000) & 255, END("\2"));
    assert_int_equal(strncmp(t->answers, "1:('')('')", 10), 0);
    assert_int_equal(t->downs, 0);
}

CASE(test_numbers)
{
    static const struct {
        const char *text;
        bool ok;
        uint64_t n;
    } of[] = {{"0", true, 0},
              {"18446744073709551615", true, UINT64_MAX},
              {"18446744073709551616", false, 0},
              {"", false, 0},
              {"-1", false, 0},
              {"1x", false, 0},
              {"00000000000000000000007", true, 7},
              {NULL, false, 0}};

    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        struct my_value v = {of[i].text, of[i].text ? strlen(of[i].text) : 0};
        uint64_t n = 0;

        assert_int_equal(hf__my_number(&v, &n), of[i].ok);
        assert_int_equal(n, of[i].n);
    }
    assert_false(hf__my_number(NULL, NULL));
}

/* Each answer is one or more whole packets that a server sends in reply to a
 * statement. */
#define ODD(text)                                                              \
    {                                                                          \
        text, sizeof(text) - 1                                                 \
    }
#define ROWS1 "\1\0\0\1\1\x17\0\0\2" COLUMN "\5\0\0\3" END("\2")

static const struct {
    const char *bytes;
    size_t len;
} odd[] = {
    ODD("\0\0\0\1"),                  /* an empty packet */
    ODD("\xff\xff\xff\1"),            /* a packet of 16 MB */
    ODD("\1\0\x80\1"),                /* longer than any answer */
    ODD("\7\0\0\2" OK_PACKET),        /* a wrong sequence number */
    ODD("\7\0\0\0" OK_PACKET),        /* another wrong number */
    ODD("\1\0\0\1\0"),                /* OK, cut off */
    ODD("\4\0\0\1\0\xfe\1\2"),        /* OK, a number cut off */
    ODD("\5\0\0\1\0\xff\0\0\0"),      /* OK, an invalid number */
    ODD("\1\0\0\1\xff"),              /* ERR, cut off */
    ODD("\3\0\0\1\xff\0\0"),          /* error number 0 */
    ODD("\x0c\0\0\1\xfb/etc/passwd"), /* LOCAL INFILE */
    ODD("\5\0\0\1" END("\2")),        /* EOF without rows */
    ODD("\3\0\0\1\xfc\0\0"),          /* 0 columns */
    ODD("\3\0\0\1\xfc\1\x10"),        /* 4097 columns */
    ODD("\2\0\0\1\1\1"),              /* extra bytes */
    ODD("\x09\0\0\1\xfe\xff\xff\xff\xff\xff\xff\xff\xff"), /* 2^64 - 1 */
    ODD("\1\0\0\1\1\x17\0\0\2" COLUMN "\1\0\0\3\0"), /* no EOF of columns */
    /* The next answer skips a sequence number. */
    ODD("\1\0\0\1\1\x17\0\0\3" COLUMN),
    ODD(ROWS1 "\1\0\0\4\1"),           /* a value without its bytes */
    ODD(ROWS1 "\3\0\0\4\1ab"),         /* extra bytes */
    ODD(ROWS1 "\3\0\0\4\xfc\xff\xff"), /* 65535 bytes, all missing */
    ODD(ROWS1 "\x0b\0\0\4\xfe\xff\xff\xff\xff\xff\xff\xff\xff"
              "ab"),
    ODD("\1\0\0\1\2\x17\0\0\2" COLUMN "\x17\0\0\3" COLUMN
        "\5\0\0\4" END("\2") "\1\0\0\5\xfb"), /* one value of two */
};

CASE_HERE(test_odd_answers_end_it)
{
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        t->downs = 0;
        log_in(t);
        assert_non_null(submit(t, 1));
        hf__net_flush(&t->c.link.stream);
        says_raw(t, odd[i].bytes, odd[i].len);
        if (t->downs != 1)
            fail_msg("answer %zu is accepted: %s", i, t->answers);
        assert_int_equal(t->down_code, HF_EPROTO);
        assert_string_equal(t->answers, "");
        assert_string_equal(t->lost, "1");
        assert_non_null(strstr(t->c.link.text, "do not understand"));
        assert_null(strstr(t->c.link.text, "is it MySQL"));
    }
}

CASE_HERE(test_answer_nobody_asked_for)
{
    log_in(t);
    SAYS(t, 1, OK_PACKET);
    assert_int_equal(t->down_code, HF_EPROTO);
    t->downs = 0;
    log_in(t);
    SAYS(t, 0, "\xff\x28\4#42000odd");
    assert_int_equal(t->downs, 1);
    assert_int_equal(t->down_code, HF_EPROTO);
}

/* The server says why it ends the connection. The client reports that reason,
 * whether or not a statement is pending. */
CASE_HERE(test_server_says_why_it_ends)
{
    for (int asks = 0; asks < 2; asks++) {
        t->downs = 0;
        log_in(t);
        if (asks)
            assert_non_null(submit(t, 1));
        hf__net_flush(&t->c.link.stream);
        SAYS(t, 0, "\xff\xbf\x0f#HY000The client was disconnected");
        assert_int_equal(t->downs, 1);
        assert_int_equal(t->down_code, HF_EBACKEND);
        assert_non_null(strstr(t->c.link.text, ": The client was disconn"));
        assert_string_equal(t->answers, "");
        assert_string_equal(t->lost, asks ? "1" : "");
    }
}

static void says_much(struct scene *t, unsigned seq, size_t len)
{
    static unsigned char zeros[16384];
    unsigned char head[4];
    size_t n;

    packet(head, seq, "", 0);
    head[0] = (unsigned char)len;
    head[1] = (unsigned char)(len >> 8);
    head[2] = (unsigned char)(len >> 16);
    says_raw(t, head, 4);
    for (; len && !t->downs; len -= n) {
        n = len < sizeof(zeros) ? len : sizeof(zeros);
        says_raw(t, zeros, n);
    }
}

/* Small values take more memory than bytes on the wire. Therefore the limit of
 * an answer counts the memory. */
CASE_HERE(test_answer_of_too_many_values)
{
    unsigned seq;
    size_t rows = 0;

    log_in(t);
    assert_non_null(submit(t, 1));
    SAYS(t, 1, "\xfc\0\x10"); /* 4096 columns */
    for (seq = 2; seq < 2 + 4096; seq++)
        SAYS(t, seq & 255, "\0");
    SAYS(t, seq & 255, END("\2"));
    for (; !t->downs; rows++)
        says_much(t, ++seq & 255, 4096);
    assert_int_equal(t->down_code, HF_EPROTO);
    assert_true(rows > 100 && rows < MY_ANSWER_MAX / 4096);
}

CASE_HERE(test_answer_that_is_too_long)
{
    unsigned seq = 2;

    log_in(t);
    assert_non_null(submit(t, 1));
    SAYS(t, 1, "\xfc\0\x10");
    for (; !t->downs; seq++)
        says_much(t, seq, 1u << 20);
    assert_int_equal(t->down_code, HF_EPROTO);
    assert_int_equal(seq, 2 + 8);
    t->downs = 0;
    log_in(t);
}

CASE_HERE(test_long_value)
{
    static unsigned char value[4 + (1u << 20)];

    log_in(t);
    assert_non_null(submit(t, 1));
    says_raw(t, ROWS1, sizeof(ROWS1) - 1);
    memcpy(value, "\xfd\0\0\x10", 4);
    says_raw(t, "\4\0\x10\4", 4);
    for (size_t i = 0; i < sizeof(value); i += 4096)
        says_raw(t, value + i, sizeof(value) - i < 4096 ? 4 : 4096);
    SAYS(t, 5, END("\2"));
    assert_string_equal(t->answers, "1:(long)\n");
    assert_int_equal(t->c.in.cap, 0); /* freed */
}

CASE_HERE(test_end_tells_lost_from_unsent)
{
    log_in(t);
    for (int i = 1; i <= 3; i++)
        assert_non_null(submit(t, i));
    hf__net_flush(&t->c.link.stream);
    assert_non_null(submit(t, 4));
    assert_non_null(submit(t, 5));
    SAYS(t, 1, OK_PACKET);
    t->code = HF_EPROTO;
    SAYS(t, 1, OK_PACKET);
    assert_int_equal(t->down_code, HF_EPROTO);
    assert_string_equal(t->answers, "1:done 0 0\n");
    assert_string_equal(t->lost, "23");
    assert_string_equal(t->not, "54");
    t->code = 0;
    t->downs = 0;
    log_in(t); /* nothing of the old connection is left */
    assert_non_null(submit(t, 6));
    SAYS(t, 1, OK_PACKET);
    assert_string_equal(t->answers, "6:done 0 0\n");
}

CASE_HERE(test_owner_may_end_it)
{
    log_in(t);
    assert_non_null(submit(t, 1));
    hf__net_flush(&t->c.link.stream);
    t->code = HF_EBACKEND;
    SAYS(t, 1, OK_PACKET);
    assert_int_equal(t->down_code, HF_EBACKEND);
    assert_non_null(strstr(t->c.link.text, ": as told"));
    assert_string_equal(t->lost, "1");
}

CASE_HERE(test_silence_ends_it)
{
    log_in(t);
    clock_ns += 100000 * HF__MS; /* no statement is pending: no answer is due */
    assert_true(hf__link_timeout(&t->c.link) == HF__NEVER);
    assert_non_null(submit(t, 1));
    hf__net_flush(&t->c.link.stream);
    clock_ns += 1000 * HF__MS;
    hf__link_advance(&t->c.link, clock_ns);
    assert_int_equal(t->down_code, HF_EBACKEND);
    assert_string_equal(t->lost, "1");
}

/* Calls every function that allocates. */
static void converse(struct scene *t)
{
    char got[1024];

    connect_it(t);
    greets(t, CAPS_ALL, "mysql_native_password");
    if (!t->downs) {
        hears(t, 1, got, sizeof(got));
        SAYS(t, 2, OK_PACKET);
    }
    for (int i = 0; i < t->hello_statements && !t->downs; i++)
        says_raw(t, chain, sizeof(chain) - 1);
    for (int i = 0; i < 200 && !t->downs; i++) {
        size_t len = t->c.link.stream.out.len;

        if (!submit(t, 1))
            assert_int_equal(t->c.link.stream.out.len, len);
    }
    if (!t->downs)
        says_raw(t, chain, 20);
}

/* Each allocation fails in turn: the failure is reported, and the next try
 * works. */
CASE_HERE(test_out_of_memory)
{
    bool failed = true;
    unsigned n;

    t->hello_statements = 20;
    for (n = 1; failed; n++) {
        hf__my_conn_fini(&t->c);
        set_up(t);
        t->downs = 0;
        fail_in = n;
        converse(t);
        failed = fail_in == 0;
        fail_in = 0;
        assert_true(failed || !t->downs);
        assert_true(!t->downs || t->down_code == HF_ENOMEM);
        t->downs = 0;
        hf__my_conn_stop(&t->c);
        converse(t);
        assert_int_equal(t->downs, 0);
    }
    assert_true(n > 6);
}

CASES_MAIN(NULL, NULL);
