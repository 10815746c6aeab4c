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
            return permit(client.getPermitExpirableSemaphore(name));
        case "plain":
            return plain(client.getSemaphore(name));
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

    /** As Redisson does not renew permits, the default lease is 30 s. */
    private static Hold permit(RPermitExpirableSemaphore semaphore) {
        return new Hold.Got<String>((waitMs, leaseMs) -> {
            long lease = leaseMs > 0 ? leaseMs : 30000;
            return waitMs < 0
                ? semaphore.acquire(lease, TimeUnit.MILLISECONDS)
                : semaphore.tryAcquire(waitMs, lease, TimeUnit.MILLISECONDS);
        }, semaphore::release, true);
    }

    private static Hold plain(RSemaphore semaphore) {
        return new Hold.Plain(semaphore::acquire,
            waitMs -> semaphore.tryAcquire(Duration.ofMillis(waitMs)),
            semaphore::release, true);
    }
}
