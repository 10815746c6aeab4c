import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** A process that locks with Redisson: RedissonPeer URL WATCHDOG_MS. */
public final class RedissonPeer extends Peer {
    private static final int LATCHES = 3, LATCH_MS = 20000;

    private final RedissonClient client;

    private RedissonPeer(String url, long watchdogMs)
        throws ReflectiveOperationException {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.setLockWatchdogTimeout(watchdogMs);
        config.useSingleServer().setAddress(url);
        client = Redisson.create(config);
        Nudge.start(client);
    }

    @Override
    Hold of(String kind, String name, int limit) {
        return Kinds.of(client, kind, name);
    }

    /**
     * A Redisson thread that is about to sleep can miss the message of a write
     * unlock by its own process. The next unlock wakes the thread, but after
     * the last entry there is no next unlock.
     */
    @Override
    boolean countsLastWait(String kind) {
        return !kind.equals("rwlock");
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

    /** Counts latches down and waits for them, in rounds. Three latches take
        turns; the latch of the next round is set before the latch of this round
        can reach 0. */
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

    @Override
    String more(String[] word) throws Exception {
        switch (word[0]) {
        case "force":
            return client.getLock(word[2]).forceUnlock() ? "forced" : "free";
        case "forget": return Nudge.wakes(client) ? "woken" : "forgotten";
        case "permits": return permits(word);
        case "latch": return latch(word);
        case "rounds": return rounds(word);
        default: return super.more(word);
        }
    }

    public static void main(String[] args) throws Exception {
        RedissonPeer peer = new RedissonPeer(args[0], Long.parseLong(args[1]));
        peer.obey();
        peer.client.shutdown();
    }
}
