// A process that locks with etcd's own Go packages. It reads one command per
// line and answers each with one line; peers.py lists the commands.
//
//	peer HOST:PORT TTL_MS
//
// Kinds: fair (concurrency.Mutex), rwlock, read, write (the recipe RWMutex).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
)

var (
	client  *clientv3.Client
	session *concurrency.Session
)

func of(w wish) (hold, error) {
	ctx := context.Background()
	switch w.kind {
	case "fair":
		m := concurrency.NewMutex(session, w.name)
		return hold{m.Lock, func() error { return m.Unlock(ctx) }, false}, nil
	case "read": // has no limit
		m := recipe.NewRWMutex(session, w.name)
		return hold{func(context.Context) error { return m.RLock() }, m.RUnlock,
			true}, nil
	case "write":
		m := recipe.NewRWMutex(session, w.name)
		return hold{func(context.Context) error { return m.Lock() }, m.Unlock,
			false}, nil
	}
	return hold{}, errors.New("no such kind: " + w.kind)
}

func isBusy(err error) bool {
	return errors.Is(err, context.DeadlineExceeded)
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
	serve()
	session.Close()
}
