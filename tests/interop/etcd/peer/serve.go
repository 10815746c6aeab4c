package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// A lock of a library.
type hold struct {
	take     func(ctx context.Context) error
	drop     func() error
	isShared bool
}

// The lock that of() creates on request. A lease of 0 is the library's default.
type wish struct {
	kind, name string
	lease      time.Duration
	once       bool // try once instead of waiting
	eager      bool // retry soon
}

var held hold

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

// Returns two locks: first is for one entry in four, other for the rest. If the
// kind is rwlock, first writes and other reads.
func both(w wish) (first, other hold, err error) {
	if w.kind != "rwlock" {
		first, err = of(w)
		return first, first, err
	}
	w.kind = "write"
	if first, err = of(w); err == nil {
		w.kind = "read"
		other, err = of(w)
	}
	return
}

func contend(word []string) (string, error) {
	r, err := openRegion(word[3], number(word[4]), number(word[5]),
		number(word[6]))
	if err != nil {
		return "", err
	}
	first, other, err := both(wish{kind: word[1], name: word[2], eager: true})
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
	end := begin.Add(milliseconds(word[4]))
	one, err := of(wish{kind: word[1], name: word[2]})
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
	if wait := milliseconds(word[4]); wait >= 0 {
		limited, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		ctx = limited
	}
	one, err := of(wish{kind: word[1], name: word[2],
		lease: milliseconds(word[3]), once: word[4] == "0"})
	before := time.Now()
	if err == nil {
		err = one.take(ctx)
	}
	if isBusy(err) {
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

// Answers each command of standard input with a line. Each peer has of() and
// isBusy() for its library.
func serve() {
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println(obey(strings.Fields(in.Text())))
	}
}
