import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * The words that the lock protects, in a file that all processes map. region.h
 * explains them; the layout is the same.
 */
final class Region {
    static final long OVER = -1;

    private static final int OWNER = 0, ENTRIES = 8, TOKEN = 16, INSIDE = 24,
        SHARED = 32, BYTES = 64;
    private static final VarHandle WORD = MethodHandles.byteBufferViewVarHandle(
        long[].class, ByteOrder.nativeOrder());

    private final ByteBuffer words;
    private final long me, total, stayNs, limit;
    long entered, overlaps, stale;

    Region(String file, long total, long stayUs, long limit)
        throws IOException {
        try (FileChannel channel = FileChannel.open(Path.of(file),
                StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            words = channel.map(FileChannel.MapMode.READ_WRITE, 0, BYTES);
        }
        me = ProcessHandle.current().pid();
        this.total = total;
        this.stayNs = stayUs * 1000;
        this.limit = limit;
    }

    private long get(int word) {
        return (long) WORD.getOpaque(words, word);
    }

    private void set(int word, long value) {
        WORD.setOpaque(words, word, value);
    }

    private long add(int word, long value) {
        return (long) WORD.getAndAdd(words, word, value) + value;
    }

    private void stay() {
        for (long end = System.nanoTime() + stayNs; System.nanoTime() < end;)
            Thread.onSpinWait();
    }

    private boolean isOver() {
        return get(ENTRIES) + (long) WORD.getVolatile(words, SHARED) >= total;
    }

    /** Enters exclusively, or only returns false after enough entries. */
    boolean exclusive(long token) {
        WORD.getVolatile(words, OWNER);
        if (isOver())
            return false;
        if (get(OWNER) != 0 || get(INSIDE) != 0)
            overlaps++;
        set(OWNER, me);
        long entries = get(ENTRIES);
        if (token > 0) {
            if (token <= get(TOKEN))
                stale++;
            set(TOKEN, token);
        }
        stay();
        set(ENTRIES, entries + 1);
        if (get(OWNER) != me || get(INSIDE) != 0)
            overlaps++;
        set(OWNER, 0);
        VarHandle.fullFence();
        entered++;
        return true;
    }

    /** Enters shared, with at most limit processes inside (0: any number). */
    boolean shared() {
        if (isOver())
            return false;
        long inside = add(INSIDE, 1);
        if (get(OWNER) != 0 || (limit > 0 && inside > limit))
            overlaps++;
        stay();
        add(SHARED, 1);
        if (get(OWNER) != 0)
            overlaps++;
        add(INSIDE, -1);
        entered++;
        return true;
    }

    /** Called before a latch is counted down. */
    void down() {
        stay();
        add(SHARED, 1);
    }

    /** Called after the wait: all limit processes must have counted down. */
    void pass(long round) {
        long downs = (long) WORD.getVolatile(words, SHARED);
        if (downs < limit * (round + 1) || downs >= limit * (round + 2))
            overlaps++;
        entered++;
    }

    /** Returns the answer to contend. */
    String done(long longestNs) {
        return String.format("done entered=%d overlaps=%d stale=%d longest_us=%d",
            entered, overlaps, stale, longestNs / 1000);
    }
}
