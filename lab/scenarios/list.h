/* The scenarios, in the order of `holdfast lab list' and `lab all'. */
LAB_SCENARIO(oversell)
LAB_SCENARIO(limiter)
LAB_SCENARIO(door)
LAB_SCENARIO(deadlock)
LAB_SCENARIO(tickets)
LAB_SCENARIO(contention)
