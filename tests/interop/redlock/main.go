// A process that locks with redsync. It reads one command per line and answers
// each with one line; peers.py lists the commands.
//
//	redsync-peer HOST:PORT,HOST:PORT... EXPIRY_MS
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
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
)

// Returns a delay of 1 to 5 ms, so that redsync gets its share alongside ours
// and the two contend more often.
func soon(int) time.Duration {
	return time.Millisecond + rand.N(4*time.Millisecond)
}

// Returns a mutex that retries without limit, after redsync's default delays
// (50 to 250 ms) unless the wish is eager.
func of(w wish) (hold, error) {
	options := []redsync.Option{redsync.WithExpiry(expiry),
		redsync.WithTries(math.MaxInt32)}
	if w.lease > 0 {
		options = append(options, redsync.WithExpiry(w.lease))
	}
	if w.eager {
		options = append(options, redsync.WithRetryDelayFunc(soon))
	}
	m := rs.NewMutex(w.name, options...)
	take := m.LockContext
	if w.once {
		take = func(context.Context) error { return m.TryLock() }
	}
	return hold{take, func() error {
		_, err := m.Unlock()
		return err
	}, false}, nil
}

func isBusy(err error) bool {
	var taken *redsync.ErrTaken
	return errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) ||
		errors.Is(err, context.DeadlineExceeded)
}

// Does what race does, but sleeps while it holds the lock and after it has
// released it. A pair counts if the lock was granted before the end; a wait
// always counts.
func turns(word []string) (string, error) {
	hold, think := milliseconds(word[4]), milliseconds(word[5])
	begin, waits := time.Now(), strings.Builder{}
	end, pairs := begin.Add(milliseconds(word[3])), 0
	m, err := of(wish{name: word[2]})
	for before := begin; err == nil && before.Before(end); before = time.Now() {
		if err = m.take(context.Background()); err != nil {
			break
		}
		now := time.Now()
		fmt.Fprintf(&waits, " %d", now.Sub(before).Microseconds())
		if now.Before(end) {
			pairs++
		}
		time.Sleep(hold)
		err = m.drop()
		time.Sleep(think)
	}
	return fmt.Sprintf("done pairs=%d us=%d waits%s", pairs,
		end.Sub(begin).Microseconds(), waits.String()), err
}

func main() {
	var pools []redis.Pool
	for _, address := range strings.Split(os.Args[1], ",") {
		pools = append(pools, goredis.NewPool(client.NewClient(
			&client.Options{Addr: address})))
	}
	rs = redsync.New(pools...)
	expiry = milliseconds(os.Args[2])
	verbs["turns"] = turns
	serve()
}
