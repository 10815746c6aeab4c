// A process that locks with redsync. It reads one command a line and answers
// each with one line; peers.py lists the commands.
//
//	redsync-peer HOST:PORT,HOST:PORT... EXPIRY_MS
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	client "github.com/redis/go-redis/v9"
)

var (
	rs     *redsync.Redsync
	expiry time.Duration
	held   *redsync.Mutex
)

// A mutex that retries without limit, after redsync's default delays (50 to 250
// ms) unless the options say otherwise.
func of(name string, expiry time.Duration, more ...redsync.Option) *redsync.Mutex {
	return rs.NewMutex(name, append(more, redsync.WithExpiry(expiry),
		redsync.WithTries(math.MaxInt32))...)
}

// Delays of 1 to 5 ms, so that redsync gets its share beside ours and meets it
// more often.
func soon(int) time.Duration {
	return time.Millisecond + rand.N(4*time.Millisecond)
}

func drop(m *redsync.Mutex) error {
	_, err := m.Unlock()
	return err
}

func number(word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func milliseconds(word string) time.Duration {
	return time.Duration(number(word)) * time.Millisecond
}

func contend(word []string) (string, error) {
	r, err := openRegion(word[3], number(word[4]), number(word[5]), 0)
	if err != nil {
		return "", err
	}
	m := of(word[2], expiry, redsync.WithRetryDelayFunc(soon))
	var longest time.Duration
	for more := true; more && err == nil; {
		before := time.Now()
		if err = m.Lock(); err != nil {
			break
		}
		longest = max(longest, time.Since(before))
		more = r.exclusive()
		err = drop(m)
	}
	return r.done(longest), err
}

func race(word []string) (string, error) {
	begin, pairs := time.Now(), 0
	end := begin.Add(milliseconds(word[4]))
	m := of(word[2], expiry)
	var err error
	for ; err == nil && time.Now().Before(end); pairs++ {
		if err = m.Lock(); err == nil {
			err = drop(m)
		}
	}
	return fmt.Sprintf("done pairs=%d us=%d", pairs,
		time.Since(begin).Microseconds()), err
}

// Like race, but sleeps with the lock and without it. A pair counts if it was
// granted in time; a wait always counts.
func turns(word []string) (string, error) {
	hold, think := milliseconds(word[4]), milliseconds(word[5])
	begin, waits := time.Now(), strings.Builder{}
	end, pairs := begin.Add(milliseconds(word[3])), 0
	m := of(word[2], expiry)
	var err error
	for before := begin; err == nil && before.Before(end); before = time.Now() {
		if err = m.Lock(); err != nil {
			break
		}
		now := time.Now()
		fmt.Fprintf(&waits, " %d", now.Sub(before).Microseconds())
		if now.Before(end) {
			pairs++
		}
		time.Sleep(hold)
		err = drop(m)
		time.Sleep(think)
	}
	return fmt.Sprintf("done pairs=%d us=%d waits%s", pairs,
		end.Sub(begin).Microseconds(), waits.String()), err
}

func isBusy(err error) bool {
	var taken *redsync.ErrTaken
	return errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) ||
		errors.Is(err, context.DeadlineExceeded)
}

func take(word []string) (string, error) {
	lease, wait := milliseconds(word[3]), milliseconds(word[4])
	if lease == 0 {
		lease = expiry
	}
	m, before := of(word[2], lease), time.Now()
	lock := m.LockContext
	if wait == 0 {
		lock = m.TryLockContext
	}
	ctx := context.Background()
	if wait > 0 {
		limited, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		ctx = limited
	}
	err := lock(ctx)
	if isBusy(err) {
		return "busy", nil
	}
	held = m
	return fmt.Sprintf("held token=0 waited_us=%d",
		time.Since(before).Microseconds()), err
}

func let([]string) (string, error) {
	return "dropped", drop(held)
}

var verbs = map[string]func([]string) (string, error){
	"contend": contend, "race": race, "turns": turns, "hold": take, "drop": let,
}

func obey(word []string) string {
	verb := verbs[word[0]]
	if verb == nil {
		return "failed no such command"
	}
	answer, err := verb(word)
	if err != nil {
		return "failed " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return answer
}

func main() {
	var pools []redis.Pool
	for _, address := range strings.Split(os.Args[1], ",") {
		pools = append(pools, goredis.NewPool(client.NewClient(
			&client.Options{Addr: address})))
	}
	rs = redsync.New(pools...)
	expiry = milliseconds(os.Args[2])
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println(obey(strings.Fields(in.Text())))
	}
}
