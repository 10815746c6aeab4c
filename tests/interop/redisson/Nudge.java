import java.lang.reflect.Field;
import java.util.HashSet;
import java.util.Set;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.misc.AsyncSemaphore;
import org.redisson.pubsub.PublishSubscribeService;

/**
 * Wakes those whom a semaphore of Redisson's subscriptions has forgotten.
 *
 * AsyncSemaphore (3.52) loses a wake-up: between "nobody waits" and giving its
 * permit back in one thread, another thread queues itself and finds no permit.
 * The permit is then free and the waiter stays until the next one comes. One
 * thread that acquires beside one that releases sees it once in 50 000 rounds.
 * Each wait for a lock subscribes under such a semaphore, so the only thread that
 * uses a lock throws "Unable to acquire subscription lock" after 7.5 s.
 */
final class Nudge implements Runnable {
    private static final long PERIOD_MS = 100;

    private final Set<AsyncSemaphore> semaphores = new HashSet<>();
    private Set<AsyncSemaphore> suspects = new HashSet<>();

    private Nudge(PublishSubscribeService service)
        throws ReflectiveOperationException {
        semaphores.addAll(
            Set.of((AsyncSemaphore[]) field(service, "locks")));
        semaphores.add((AsyncSemaphore) field(service, "freePubSubLock"));
    }

    private static Object field(Object of, String name)
        throws ReflectiveOperationException {
        Field field = of.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
    }

    static void start(RedissonClient client)
        throws ReflectiveOperationException {
        Thread thread = new Thread(new Nudge(((Redisson) client)
            .getCommandExecutor().getConnectionManager().getSubscribeService()));
        thread.setDaemon(true);
        thread.start();
    }

    /** For a moment, that state is a right one: it counts the second time. */
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
