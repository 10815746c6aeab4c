import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;

/**
 * JdbcPeer spring|shedlock URL LEASE_MS: locks in tables of their own, which
 * mysql.py creates. Connections come from HikariCP, as in a Spring Boot program.
 */
public final class JdbcPeer extends Peer {
    /** ShedLock has no call that waits: the pause between two tries. */
    private static final int RETRY_MS = 10;

    /** The server would not accept 10 for each of 16 processes. */
    private static final int POOL = 2;

    private final JdbcLockRegistry spring; // one of the two is null
    private final LockProvider shedlock;
    private final long leaseMs;

    private JdbcPeer(String library, String url, long leaseMs) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url);
        config.setMaximumPoolSize(POOL);
        HikariDataSource source = new HikariDataSource(config);
        JdbcTransactionManager transactions =
            new JdbcTransactionManager(source);
        this.leaseMs = leaseMs;
        if (library.equals("shedlock")) {
            spring = null;
            shedlock = new JdbcTemplateLockProvider(
                JdbcTemplateLockProvider.Configuration.builder()
                    .withJdbcTemplate(new JdbcTemplate(source))
                    .withTransactionManager(transactions)
                    .usingDbTime()
                    .build());
        } else {
            DefaultLockRepository repository =
                new DefaultLockRepository(source);
            repository.setTimeToLive((int) leaseMs);
            repository.setTransactionManager(transactions);
            repository.afterPropertiesSet();
            repository.afterSingletonsInstantiated();
            repository.start();
            spring = new JdbcLockRegistry(repository);
            shedlock = null;
        }
    }

    @Override
    Hold of(String kind, String name, int limit) {
        return spring != null ? new Registered(spring.obtain(name))
                              : new Shed(name);
    }

    @Override
    String more(String[] word) {
        return "failed no such command: " + word[0];
    }

    private record Registered(Lock lock) implements Hold {
        public long take(long waitMs, long leaseMs)
            throws InterruptedException {
            if (waitMs < 0)
                lock.lock();
            else if (!lock.tryLock(waitMs, TimeUnit.MILLISECONDS))
                return NOT_GOT;
            return 0;
        }

        public void drop() {
            lock.unlock();
        }
    }

    private final class Shed implements Hold {
        private final String name;
        private SimpleLock lock;

        Shed(String name) {
            this.name = name;
        }

        public long take(long waitMs, long wantedMs)
            throws InterruptedException {
            Duration lease = Duration.ofMillis(wantedMs > 0 ? wantedMs
                                                            : leaseMs);
            long begin = System.nanoTime();
            for (;;) {
                Optional<SimpleLock> got = shedlock.lock(new LockConfiguration(
                    Instant.now(), name, lease, Duration.ZERO));
                if (got.isPresent()) {
                    lock = got.get();
                    return 0;
                }
                if (waitMs >= 0
                    && System.nanoTime() - begin >= waitMs * 1000000)
                    return NOT_GOT;
                Thread.sleep(RETRY_MS);
            }
        }

        public void drop() {
            lock.unlock();
        }
    }

    public static void main(String[] arg) throws Exception {
        new JdbcPeer(arg[0], arg[1], Long.parseLong(arg[2])).obey();
        System.exit(0);
    }
}
