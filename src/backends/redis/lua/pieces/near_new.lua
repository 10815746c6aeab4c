-- Sets `near` for the caller, which has just become the q-th in the queue.
--@needs near q
near=q<=$RD_POLL_FIRST and q or $last
