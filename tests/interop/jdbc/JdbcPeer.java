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
 * A process that locks with Spring Integration or ShedLock, each in its own
 * tables, which mysql.py creates: JdbcPeer spring|shedlock URL LEASE_MS.
 * Connections come from HikariCP, as in a Spring Boot program.
 */
public final class JdbcPeer extends Peer {
    /** The pause between two tries, as ShedLock has no call that waits. */
    private static final int RETRY_MS = 10;

    /** The default of 10 in each of 16 processes exceeds the server's limit. */
    private static final int POOL = 2;

    private final JdbcLockRegistry spring; // this or shedlock is null
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
        if (spring == null)
            return new Hold.Got<SimpleLock>((waitMs, wantedMs) ->
                shed(name, waitMs, wantedMs), SimpleLock::unlock, false);
        Lock lock = spring.obtain(name);
        return new Hold.Plain(lock::lock,
            waitMs -> lock.tryLock(waitMs, TimeUnit.MILLISECONDS),
            lock::unlock, false);
    }

    private SimpleLock shed(String name, long waitMs, long wantedMs)
        throws InterruptedException {
        Duration lease = Duration.ofMillis(wantedMs > 0 ? wantedMs : leaseMs);
        long begin = System.nanoTime();
        for (;;) {
            Optional<SimpleLock> got = shedlock.lock(new LockConfiguration(
                Instant.now(), name, lease, Duration.ZERO));
            if (got.isPresent())
                return got.get();
            if (waitMs >= 0 && System.nanoTime() - begin >= waitMs * 1000000)
                return null;
            Thread.sleep(RETRY_MS);
        }
    }

    public static void main(String[] arg) throws Exception {
        new JdbcPeer(arg[0], arg[1], Long.parseLong(arg[2])).obey();
        System.exit(0);
    }
}
