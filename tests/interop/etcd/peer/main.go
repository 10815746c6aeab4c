// A process that locks with etcd's own Go packages. It reads one command a line
// and answers each with one line; peers.py lists the commands.
//
//	peer HOST:PORT TTL_MS
//
// Kinds: fair (concurrency.Mutex), rwlock, read, write (the recipe RWMutex).
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
)

type hold struct {
	take     func(ctx context.Context) error
	drop     func() error
	isShared bool
}

var (
	client  *clientv3.Client
	session *concurrency.Session
	held    hold
)

func of(kind, name string) (hold, error) {
	ctx := context.Background()
	switch kind {
	case "fair":
		m := concurrency.NewMutex(session, name)
		return hold{m.Lock, func() error { return m.Unlock(ctx) }, false}, nil
	case "read": // has no limit
		m := recipe.NewRWMutex(session, name)
		return hold{func(context.Context) error { return m.RLock() }, m.RUnlock,
			true}, nil
	case "write":
		m := recipe.NewRWMutex(session, name)
		return hold{func(context.Context) error { return m.Lock() }, m.Unlock,
			false}, nil
	}
	return hold{}, errors.New("no such kind: " + kind)
}

// Locks for writing and for reading: one entry of four writes.
func both(kind, name string) (first, other hold, err error) {
	if kind != "rwlock" {
		first, err = of(kind, name)
		return first, first, err
	}
	if first, err = of("write", name); err == nil {
		other, err = of("read", name)
	}
	return
}

func number(word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func contend(word []string) (string, error) {
	r, err := openRegion(word[3], number(word[4]), number(word[5]),
		number(word[6]))
	if err != nil {
		return "", err
	}
	first, other, err := both(word[1], word[2])
	var longest time.Duration
	more := true
	for i := 0; more && err == nil; i++ {
		now := other
		if i%4 == 0 {
			now = first
		}
		before := time.Now()
		if err = now.take(context.Background()); err != nil {
			break
		}
		longest = max(longest, time.Since(before))
		if now.isShared {
			more = r.together()
		} else {
			more = r.exclusive()
		}
		err = now.drop()
	}
	return r.done(longest), err
}

func race(word []string) (string, error) {
	begin, pairs := time.Now(), 0
	end := begin.Add(time.Duration(number(word[4])) * time.Millisecond)
	one, err := of(word[1], word[2])
	for ; err == nil && time.Now().Before(end); pairs++ {
		if err = one.take(context.Background()); err == nil {
			err = one.drop()
		}
	}
	return fmt.Sprintf("done pairs=%d us=%d", pairs,
		time.Since(begin).Microseconds()), err
}

func take(word []string) (string, error) {
	ctx := context.Background()
	if wait := number(word[4]); wait >= 0 {
		limited, cancel := context.WithTimeout(ctx,
			time.Duration(wait)*time.Millisecond)
		defer cancel()
		ctx = limited
	}
	one, err := of(word[1], word[2])
	before := time.Now()
	if err == nil {
		err = one.take(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "busy", nil
	}
	held = one
	return fmt.Sprintf("held token=0 waited_us=%d",
		time.Since(before).Microseconds()), err
}

func drop([]string) (string, error) {
	return "dropped", held.drop()
}

var verbs = map[string]func([]string) (string, error){
	"contend": contend, "race": race, "hold": take, "drop": drop,
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

func open(address string, ttlMs int64) (err error) {
	client, err = clientv3.New(clientv3.Config{
		Endpoints: []string{address}, DialTimeout: 10 * time.Second})
	if err == nil {
		session, err = concurrency.NewSession(client,
			concurrency.WithTTL(int(ttlMs/1000)))
	}
	return
}

func main() {
	if err := open(os.Args[1], number(os.Args[2])); err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println(obey(strings.Fields(in.Text())))
	}
	session.Close()
}
