import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * A process that locks with Curator, and does what it is told: one command a
 * line, one answer a line. peers.py and zookeeper.py list the commands.
 *
 * CuratorPeer HOSTS SESSION_MS [mutex]: with the last word a semaphore is an
 * InterProcessSemaphoreMutex.
 */
public final class CuratorPeer {
    /** One thing to hold. */
    private interface Hold {
        boolean take(long waitMs) throws Exception;

        void drop() throws Exception;

        boolean isShared();
    }

    private record Lock(InterProcessLock lock, boolean isShared)
        implements Hold {
        public boolean take(long waitMs) throws Exception {
            if (waitMs >= 0)
                return lock.acquire(waitMs, TimeUnit.MILLISECONDS);
            lock.acquire();
            return true;
        }

        public void drop() throws Exception {
            lock.release();
        }
    }

    private static final class Permit implements Hold {
        private final InterProcessSemaphoreV2 semaphore;
        private Lease lease;

        Permit(InterProcessSemaphoreV2 semaphore) {
            this.semaphore = semaphore;
        }

        public boolean take(long waitMs) throws Exception {
            lease = waitMs >= 0
                ? semaphore.acquire(waitMs, TimeUnit.MILLISECONDS)
                : semaphore.acquire();
            return lease != null;
        }

        public void drop() {
            semaphore.returnLease(lease);
        }

        public boolean isShared() {
            return true;
        }
    }

    private final CuratorFramework client;
    private final boolean semaphoresAreMutexes;
    private Hold held;
    private CountDownLatch wanted;

    private CuratorPeer(String[] args) throws InterruptedException {
        // What it writes into its nodes by default, where a machine knows its
        // own name.
        byte[] address = InetAddress.getLoopbackAddress().getHostAddress()
            .getBytes(StandardCharsets.UTF_8);
        client = CuratorFrameworkFactory.builder().connectString(args[0])
            .sessionTimeoutMs(Integer.parseInt(args[1]))
            .connectionTimeoutMs(10000).defaultData(address)
            .retryPolicy(new ExponentialBackoffRetry(50, 10)).build();
        semaphoresAreMutexes = args.length > 2 && args[2].equals("mutex");
        client.start();
        client.blockUntilConnected();
    }

    private Hold of(String kind, String name, int limit) {
        String path = "/" + name;
        switch (kind) {
        case "fair":
        case "revocable":
            return new Lock(new InterProcessMutex(client, path), false);
        case "read":
            return new Lock(new InterProcessReadWriteLock(client, path)
                .readLock(), true);
        case "write":
            return new Lock(new InterProcessReadWriteLock(client, path)
                .writeLock(), false);
        case "semaphore":
            if (semaphoresAreMutexes)
                return new Lock(new InterProcessSemaphoreMutex(client, path),
                    true);
            return new Permit(new InterProcessSemaphoreV2(client, path, limit));
        default:
            throw new IllegalArgumentException(kind);
        }
    }

    private String contend(String[] word) throws Exception {
        String kind = word[1], name = word[2];
        int limit = Integer.parseInt(word[6]);
        Region region = new Region(word[3], Long.parseLong(word[4]),
            Long.parseLong(word[5]), limit);
        boolean both = kind.equals("rwlock");
        Hold first = of(both ? "write" : kind, name, limit);
        Hold other = both ? of("read", name, limit) : first;
        long longest = 0;
        boolean more = true;
        for (int i = 0; more; i++) {
            Hold now = i % 4 == 0 ? first : other;
            long before = System.nanoTime();
            now.take(-1);
            longest = Math.max(longest, System.nanoTime() - before);
            more = now.isShared() ? region.shared() : region.exclusive(0);
            now.drop();
        }
        return String.format("done entered=%d overlaps=%d stale=%d longest_us=%d",
            region.entered, region.overlaps, region.stale, longest / 1000);
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
                Hold hold = of(word[1], word[2], 1);
                long done = 0;
                try {
                    for (; System.nanoTime() - begin < ns; done++) {
                        hold.take(-1);
                        hold.drop();
                    }
                } catch (Exception e) {
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
        int limit = word.length > 5 ? Integer.parseInt(word[5]) : 1;
        Hold hold = of(word[1], word[2], limit);
        long before = System.nanoTime();
        CountDownLatch latch = new CountDownLatch(1);
        // Its node has no data then.
        if (word[1].equals("revocable") && hold instanceof Lock one
            && one.lock instanceof InterProcessMutex mutex)
            mutex.makeRevocable(lock -> latch.countDown());
        if (!hold.take(Long.parseLong(word[4])))
            return "busy";
        held = hold;
        wanted = latch;
        return String.format("held token=0 waited_us=%d",
            (System.nanoTime() - before) / 1000);
    }

    private String drop() throws Exception {
        Hold hold = held;
        held = null;
        hold.drop();
        return "dropped";
    }

    /** Asks the holder to let go. */
    private String ask(String[] word) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(client, "/" + word[2]);
        String first = mutex.getParticipantNodes().iterator().next();
        Revoker.attemptRevoke(client, first);
        return "asked";
    }

    private String obey(String[] word) {
        try {
            switch (word[0]) {
            case "contend": return contend(word);
            case "race": return race(word);
            case "hold": return hold(word);
            case "drop": return drop();
            case "ask": return ask(word);
            case "wanted":
                return wanted.await(Long.parseLong(word[1]),
                    TimeUnit.MILLISECONDS) ? "wanted" : "quiet";
            default: return "failed no such command";
            }
        } catch (Exception e) {
            return "failed " + e.toString().replace('\n', ' ');
        }
    }

    public static void main(String[] args) throws Exception {
        CuratorPeer peer = new CuratorPeer(args);
        BufferedReader in = new BufferedReader(
            new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            System.out.println(peer.obey(line.split(" ")));
            System.out.flush();
        }
        peer.client.close();
    }
}
