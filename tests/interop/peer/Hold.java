/** One thing to hold, whatever library it is of. */
interface Hold {
    long NOT_GOT = -1;

    /**
     * Waits (for ever: negative) and takes it, renewed (lease 0) or not. The
     * token, 0 where there is none, or NOT_GOT.
     */
    long take(long waitMs, long leaseMs) throws Exception;

    void drop() throws Exception;

    default boolean isShared() {
        return false;
    }
}
