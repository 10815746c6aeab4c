/* The scenarios, in the order of `holdfast lab list' and `lab all'. */
LAB_SCENARIO(oversell)
LAB_SCENARIO(crash)
LAB_SCENARIO(slow)
LAB_SCENARIO(stall)
LAB_SCENARIO(misdelete)
LAB_SCENARIO(failover)
LAB_SCENARIO(eviction)
