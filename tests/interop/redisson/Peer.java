import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * A process that locks with Redisson, and does what it is told: one command a
 * line, one answer a line. peers.py lists the commands.
 *
 * Peer URL WATCHDOG_MS
 */
public final class Peer {
    private static final int LATCHES = 3, LATCH_MS = 20000;

    private final RedissonClient client;
    private Kind held;

    private Peer(String url, long watchdogMs) {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(watchdogMs);
        config.useSingleServer().setAddress(url);
        client = Redisson.create(config);
    }

    private String contend(String[] word) throws Exception {
        String kind = word[1], name = word[2];
        Region region = new Region(word[3], Long.parseLong(word[4]),
            Long.parseLong(word[5]), Long.parseLong(word[6]));
        boolean both = kind.equals("rwlock");
        Kind first = Kind.of(client, both ? "write" : kind, name);
        Kind other = both ? Kind.of(client, "read", name) : first;
        long longest = 0;
        boolean more = true;
        for (int i = 0; more; i++) {
            Kind now = i % 4 == 0 ? first : other;
            long before = System.nanoTime();
            long token = now.take(-1, 0);
            long waited = System.nanoTime() - before;
            more = now.isShared() ? region.shared() : region.exclusive(token);
            // A thread of Redisson's that is about to sleep does not keep what
            // its own write unlock says. The next unlock wakes it; after the
            // last there is none.
            if (more || !both)
                longest = Math.max(longest, waited);
            now.drop();
        }
        return region.done(longest);
    }

    /** Pairs of lock and unlock, by some threads, for some time. */
    private String race(String[] word) throws Exception {
        int threads = Integer.parseInt(word[3]);
        long ns = Long.parseLong(word[4]) * 1000000;
        AtomicLong pairs = new AtomicLong();
        Thread[] racer = new Thread[threads];
        long begin = System.nanoTime();
        for (int i = 0; i < threads; i++) {
            racer[i] = new Thread(() -> {
                Kind kind = Kind.of(client, word[1], word[2]);
                long done = 0;
                try {
                    for (; System.nanoTime() - begin < ns; done++) {
                        kind.take(-1, 0);
                        kind.drop();
                    }
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
                pairs.addAndGet(done);
            });
            racer[i].start();
        }
        for (Thread one : racer)
            one.join();
        return String.format("done pairs=%d us=%d", pairs.get(),
            (System.nanoTime() - begin) / 1000);
    }

    private String hold(String[] word) throws Exception {
        Kind kind = Kind.of(client, word[1], word[2]);
        long before = System.nanoTime();
        long token = kind.take(Long.parseLong(word[4]),
            Long.parseLong(word[3]));
        if (token == Kind.NOT_GOT)
            return "busy";
        held = kind;
        return String.format("held token=%d waited_us=%d", token,
            (System.nanoTime() - before) / 1000);
    }

    private String drop() {
        Kind kind = held;
        held = null;
        kind.drop();
        return "dropped";
    }

    private String permits(String[] word) {
        int count = Integer.parseInt(word[3]);
        boolean set = word[1].equals("plain")
            ? client.getSemaphore(word[2]).trySetPermits(count)
            : client.getPermitExpirableSemaphore(word[2]).trySetPermits(count);
        return set ? "set" : "busy";
    }

    private String latch(String[] word) throws Exception {
        RCountDownLatch latch = client.getCountDownLatch(word[2]);
        switch (word[1]) {
        case "set":
            return latch.trySetCount(Long.parseLong(word[3])) ? "set" : "busy";
        case "down":
            latch.countDown();
            return "down";
        case "get":
            return "count " + latch.getCount();
        default:
            return latch.await(Long.parseLong(word[3]), TimeUnit.MILLISECONDS)
                ? "zero" : "timeout";
        }
    }

    /** Rounds of a latch: three take turns, and the next one is set before this
        one can be 0. */
    private String rounds(String[] word) throws Exception {
        int rounds = Integer.parseInt(word[3]), me = Integer.parseInt(word[5]);
        int count = Integer.parseInt(word[6]);
        Region region = new Region(word[2], 0, Long.parseLong(word[4]),
            Long.parseLong(word[7]));
        RCountDownLatch[] turn = new RCountDownLatch[LATCHES];
        for (int i = 0; i < LATCHES; i++)
            turn[i] = client.getCountDownLatch(word[1] + "-" + i);
        long longest = 0;
        for (int i = 0; i < rounds; i++) {
            long before = System.nanoTime();
            RCountDownLatch now = turn[i % LATCHES];
            RCountDownLatch next = turn[(i + 1) % LATCHES];
            if (i + 1 < rounds && (i + 1) % count == me
                && !next.trySetCount(count))
                return "failed the next latch is in use";
            region.down();
            now.countDown();
            if (!now.await(LATCH_MS, TimeUnit.MILLISECONDS))
                return "failed the latch does not become 0";
            region.pass(i);
            longest = Math.max(longest, System.nanoTime() - before);
        }
        return region.done(longest);
    }

    private String obey(String[] word) {
        try {
            switch (word[0]) {
            case "contend": return contend(word);
            case "race": return race(word);
            case "hold": return hold(word);
            case "drop": return drop();
            case "force":
                return client.getLock(word[2]).forceUnlock() ? "forced" : "free";
            case "permits": return permits(word);
            case "latch": return latch(word);
            case "rounds": return rounds(word);
            default: return "failed no such command";
            }
        } catch (Exception e) {
            return "failed " + e.toString().replace('\n', ' ');
        }
    }

    public static void main(String[] args) throws Exception {
        Peer peer = new Peer(args[0], Long.parseLong(args[1]));
        BufferedReader in = new BufferedReader(
            new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            System.out.println(peer.obey(line.split(" ")));
            System.out.flush();
        }
        peer.client.shutdown();
    }
}
