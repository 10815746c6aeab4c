import java.lang.reflect.Field;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.misc.AsyncSemaphore;
import org.redisson.pubsub.PublishSubscribeService;

/**
 * Wakes waiters that a semaphore of Redisson's subscriptions has forgotten.
 *
 * AsyncSemaphore (3.52) can lose a wake-up. A thread that releases the
 * semaphore takes the permit, finds the queue empty, and puts the permit back.
 * A second thread that queues itself in between finds no permit. The permit is
 * then free, but the second thread waits until a third one uses the semaphore.
 * With one thread that acquires and one that releases, that happens about once
 * in 50 000 rounds. Every wait for a lock subscribes under such a semaphore, so
 * a process with one thread throws "Unable to acquire subscription lock" after
 * 7.5 s.
 */
final class Nudge implements Runnable {
    private static final long PERIOD_MS = 100, WOKEN_BY_MS = 5000;

    private final Set<AsyncSemaphore> semaphores = new HashSet<>();
    private Set<AsyncSemaphore> suspects = new HashSet<>();

    private Nudge(PublishSubscribeService service)
        throws ReflectiveOperationException {
        semaphores.addAll(Set.of(locks(service)));
        semaphores.add((AsyncSemaphore) field(service, "freePubSubLock"));
    }

    private static PublishSubscribeService service(RedissonClient client) {
        return ((Redisson) client).getCommandExecutor().getConnectionManager()
            .getSubscribeService();
    }

    private static AsyncSemaphore[] locks(PublishSubscribeService service)
        throws ReflectiveOperationException {
        return (AsyncSemaphore[]) field(service, "locks");
    }

    private static Object field(Object of, String name)
        throws ReflectiveOperationException {
        Field field = of.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
    }

    static void start(RedissonClient client)
        throws ReflectiveOperationException {
        Thread thread = new Thread(new Nudge(service(client)));
        thread.setDaemon(true);
        thread.start();
    }

    /**
     * Makes one of the client's semaphores forget a waiter: a permit becomes
     * free, and the queue is not checked. Returns whether the waiter is woken.
     */
    static boolean wakes(RedissonClient client) throws Exception {
        AsyncSemaphore one = locks(service(client))[0];
        one.acquire().get();
        CompletableFuture<Void> waiter = one.acquire();
        ((AtomicInteger) field(one, "counter")).incrementAndGet();
        try {
            waiter.get(WOKEN_BY_MS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            return false;
        }
        one.release();
        return true;
    }

    /** Wakes the waiter of each semaphore that has a free permit and a waiter.
        At each acquire a semaphore is in that state for a moment, so its waiter
        is woken only if two checks in a row find it in that state. */
    private void look() {
        Set<AsyncSemaphore> found = new HashSet<>();
        for (AsyncSemaphore one : semaphores) {
            if (one.getCounter() <= 0 || one.queueSize() == 0)
                continue;
            if (!suspects.contains(one)) {
                found.add(one);
                continue;
            }
            System.err.println("# a semaphore of Redisson's forgot a waiter");
            one.acquire().thenAccept(nothing -> one.release());
        }
        suspects = found;
    }

    @Override
    public void run() {
        try {
            for (;; Thread.sleep(PERIOD_MS))
                look();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
