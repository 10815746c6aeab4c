import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** Redisson's objects of the kinds that both sides have. */
final class Kinds {
    private Kinds() {
    }

    static Hold of(RedissonClient client, String kind, String name) {
        switch (kind) {
        case "unfair":
            return new Lock(client.getLock(name), false);
        case "fair":
            return new Lock(client.getFairLock(name), false);
        case "fenced":
            return new Fenced(client.getFencedLock(name));
        case "read":
            return new Lock(client.getReadWriteLock(name).readLock(), true);
        case "write":
            return new Lock(client.getReadWriteLock(name).writeLock(), false);
        case "semaphore":
            return new Permit(client.getPermitExpirableSemaphore(name));
        case "plain":
            return new Plain(client.getSemaphore(name));
        default:
            throw new IllegalArgumentException(kind);
        }
    }

    private record Lock(RLock lock, boolean isShared) implements Hold {
        public long take(long waitMs, long leaseMs)
            throws InterruptedException {
            long lease = leaseMs > 0 ? leaseMs : -1;
            if (waitMs < 0)
                lock.lock(lease, TimeUnit.MILLISECONDS);
            else if (!lock.tryLock(waitMs, lease, TimeUnit.MILLISECONDS))
                return NOT_GOT;
            return 0;
        }

        public void drop() {
            lock.unlock();
        }
    }

    private record Fenced(RFencedLock lock) implements Hold {
        public long take(long waitMs, long leaseMs) {
            long lease = leaseMs > 0 ? leaseMs : -1;
            Long token = waitMs < 0
                ? lock.lockAndGetToken(lease, TimeUnit.MILLISECONDS)
                : lock.tryLockAndGetToken(waitMs, lease, TimeUnit.MILLISECONDS);
            return token == null ? NOT_GOT : token;
        }

        public void drop() {
            lock.unlock();
        }
    }

    /** Redisson does not renew permits: 30 s if no lease is given. */
    private static final class Permit implements Hold {
        private final RPermitExpirableSemaphore semaphore;
        private String id;

        Permit(RPermitExpirableSemaphore semaphore) {
            this.semaphore = semaphore;
        }

        public long take(long waitMs, long leaseMs)
            throws InterruptedException {
            long lease = leaseMs > 0 ? leaseMs : 30000;
            id = waitMs < 0
                ? semaphore.acquire(lease, TimeUnit.MILLISECONDS)
                : semaphore.tryAcquire(waitMs, lease, TimeUnit.MILLISECONDS);
            return id == null ? NOT_GOT : 0;
        }

        public void drop() {
            semaphore.release(id);
        }

        public boolean isShared() {
            return true;
        }
    }

    private record Plain(RSemaphore semaphore) implements Hold {
        public long take(long waitMs, long leaseMs)
            throws InterruptedException {
            if (waitMs < 0)
                semaphore.acquire();
            else if (!semaphore.tryAcquire(Duration.ofMillis(waitMs)))
                return NOT_GOT;
            return 0;
        }

        public void drop() {
            semaphore.release();
        }

        public boolean isShared() {
            return true;
        }
    }
}
