import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
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
 * A process that locks with Curator: CuratorPeer HOSTS SESSION_MS [mutex]. With
 * the last word, a semaphore is an InterProcessSemaphoreMutex. zookeeper.py
 * lists the commands in addition to the usual ones.
 */
public final class CuratorPeer extends Peer {
    private final CuratorFramework client;
    private final boolean semaphoresAreMutexes;
    private CountDownLatch wanted; // of the last revocable mutex

    private CuratorPeer(String[] args) throws InterruptedException {
        // Curator's default, if the machine can resolve its own name.
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

    private static Hold lock(InterProcessLock lock, boolean isShared) {
        return new Hold.Plain(lock::acquire,
            waitMs -> lock.acquire(waitMs, TimeUnit.MILLISECONDS),
            lock::release, isShared);
    }

    private static Hold permit(InterProcessSemaphoreV2 semaphore) {
        return new Hold.Got<Lease>((waitMs, leaseMs) -> waitMs >= 0
            ? semaphore.acquire(waitMs, TimeUnit.MILLISECONDS)
            : semaphore.acquire(), semaphore::returnLease, true);
    }

    private Hold revocable(String path) {
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        CountDownLatch latch = new CountDownLatch(1);
        mutex.makeRevocable(lock -> latch.countDown());
        wanted = latch;
        return lock(mutex, false);
    }

    @Override
    Hold of(String kind, String name, int limit) {
        String path = "/" + name;
        switch (kind) {
        case "fair":
            return lock(new InterProcessMutex(client, path), false);
        case "revocable": // its node has no data
            return revocable(path);
        case "read":
            return lock(new InterProcessReadWriteLock(client, path).readLock(),
                true);
        case "write":
            return lock(new InterProcessReadWriteLock(client, path).writeLock(),
                false);
        case "semaphore":
            if (semaphoresAreMutexes)
                return lock(new InterProcessSemaphoreMutex(client, path), true);
            return permit(new InterProcessSemaphoreV2(client, path, limit));
        default:
            throw new IllegalArgumentException(kind);
        }
    }

    /** Asks the holder to release the lock. */
    private String ask(String[] word) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(client, "/" + word[2]);
        String first = mutex.getParticipantNodes().iterator().next();
        Revoker.attemptRevoke(client, first);
        return "asked";
    }

    @Override
    String more(String[] word) throws Exception {
        switch (word[0]) {
        case "ask": return ask(word);
        case "wanted":
            return wanted.await(Long.parseLong(word[1]),
                TimeUnit.MILLISECONDS) ? "wanted" : "quiet";
        default: return super.more(word);
        }
    }

    public static void main(String[] args) throws Exception {
        CuratorPeer peer = new CuratorPeer(args);
        peer.obey();
        peer.client.close();
    }
}
