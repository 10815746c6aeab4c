/** A lock, permit or other hold of any library. */
interface Hold {
    long NOT_GOT = -1;

    /**
     * Waits (negative: for ever) and acquires it, renewed if leaseMs is 0.
     * Returns the token, 0 if there is none, or NOT_GOT.
     */
    long take(long waitMs, long leaseMs) throws Exception;

    void drop() throws Exception;

    default boolean isShared() {
        return false;
    }
}
