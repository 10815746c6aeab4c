/** A lock, permit or other hold of any library. */
interface Hold {
    long NOT_GOT = -1;

    /**
     * Waits at most waitMs (negative: for ever) and acquires the lock, which is
     * renewed if leaseMs is 0. Returns the token, or 0 if the library has none,
     * or NOT_GOT.
     */
    long take(long waitMs, long leaseMs) throws Exception;

    void drop() throws Exception;

    default boolean isShared() {
        return false;
    }

    interface Call {
        void run() throws Exception;
    }

    interface Try {
        boolean within(long waitMs) throws Exception;
    }

    /** A hold of a library that takes no lease and returns no token. */
    record Plain(Call acquire, Try tries, Call release, boolean isShared)
        implements Hold {
        public long take(long waitMs, long leaseMs) throws Exception {
            if (waitMs < 0)
                acquire.run();
            else if (!tries.within(waitMs))
                return NOT_GOT;
            return 0;
        }

        public void drop() throws Exception {
            release.run();
        }
    }

    interface Take<T> {
        T within(long waitMs, long leaseMs) throws Exception;
    }

    interface Give<T> {
        void back(T got) throws Exception;
    }

    /** A hold that the library represents by an object, null if not granted. */
    final class Got<T> implements Hold {
        private final Take<T> take;
        private final Give<T> give;
        private final boolean isShared;
        private T got;

        Got(Take<T> take, Give<T> give, boolean isShared) {
            this.take = take;
            this.give = give;
            this.isShared = isShared;
        }

        public long take(long waitMs, long leaseMs) throws Exception {
            got = take.within(waitMs, leaseMs);
            return got == null ? NOT_GOT : 0;
        }

        public void drop() throws Exception {
            give.back(got);
        }

        public boolean isShared() {
            return isShared;
        }
    }
}
