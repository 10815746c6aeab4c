import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A process that locks with a Java library. It reads one command per line and
 * answers each with one line; peers.py lists the commands.
 */
abstract class Peer {
    private Hold held;

    /** Returns the library's lock of that name, for limit owners at a time. */
    abstract Hold of(String kind, String name, int limit);

    /** Runs a command that only some peers know. Returns the answer. */
    String more(String[] word) throws Exception {
        return "failed no such command";
    }

    /** Returns whether the wait after the last entry counts for longest_us. */
    boolean countsLastWait(String kind) {
        return true;
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
            long token = now.take(-1, 0);
            long waited = System.nanoTime() - before;
            more = now.isShared() ? region.shared() : region.exclusive(token);
            if (more || countsLastWait(kind))
                longest = Math.max(longest, waited);
            now.drop();
        }
        return region.done(longest);
    }

    private long pairs(String[] word, long end) {
        Hold hold = of(word[1], word[2], 1);
        long done = 0;
        try {
            for (; System.nanoTime() - end < 0; done++) {
                hold.take(-1, 0);
                hold.drop();
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
        return done;
    }

    private String race(String[] word) throws InterruptedException {
        Thread[] racer = new Thread[Integer.parseInt(word[3])];
        AtomicLong sum = new AtomicLong();
        long begin = System.nanoTime();
        long end = begin + Long.parseLong(word[4]) * 1000000;
        for (int i = 0; i < racer.length; i++) {
            racer[i] = new Thread(() -> sum.addAndGet(pairs(word, end)));
            racer[i].start();
        }
        for (Thread one : racer)
            one.join();
        return String.format("done pairs=%d us=%d", sum.get(),
            (System.nanoTime() - begin) / 1000);
    }

    private String hold(String[] word) throws Exception {
        int limit = word.length > 5 ? Integer.parseInt(word[5]) : 1;
        Hold hold = of(word[1], word[2], limit);
        long before = System.nanoTime();
        long token = hold.take(Long.parseLong(word[4]),
            Long.parseLong(word[3]));
        if (token == Hold.NOT_GOT)
            return "busy";
        held = hold;
        return String.format("held token=%d waited_us=%d", token,
            (System.nanoTime() - before) / 1000);
    }

    private String drop() throws Exception {
        Hold hold = held;
        held = null;
        hold.drop();
        return "dropped";
    }

    private String obey(String[] word) {
        try {
            switch (word[0]) {
            case "contend": return contend(word);
            case "race": return race(word);
            case "hold": return hold(word);
            case "drop": return drop();
            default: return more(word);
            }
        } catch (Exception e) {
            return "failed " + e.toString().replace('\n', ' ');
        }
    }

    /** Serves commands until standard input ends. */
    final void obey() throws IOException {
        BufferedReader in = new BufferedReader(
            new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = in.readLine()) != null;) {
            System.out.println(obey(line.split(" ")));
            System.out.flush();
        }
    }
}
