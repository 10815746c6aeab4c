package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// The words that the lock protects, in a file that all processes map. region.h
// explains them; the layout is the same.
type words struct {
	owner, entries, token, inside, shared int64
	spare                                 [3]int64
}

type region struct {
	*words
	me, total, limit  int64
	stay              time.Duration
	entered, overlaps int
}

func openRegion(file string, total, stayUs, limit int64) (*region, error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at, err := syscall.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(words{})),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &region{words: (*words)(unsafe.Pointer(&at[0])),
		me: int64(os.Getpid()), total: total, limit: limit,
		stay: time.Duration(stayUs) * time.Microsecond}, nil
}

func (r *region) wait() {
	for end := time.Now().Add(r.stay); time.Now().Before(end); {
	}
}

func (r *region) isOver() bool {
	return atomic.LoadInt64(&r.words.entries)+
		atomic.LoadInt64(&r.words.shared) >= r.total
}

func (r *region) note(overlap bool) {
	if overlap {
		r.overlaps++
	}
}

// Enters exclusively, or only returns false after enough entries.
func (r *region) exclusive() bool {
	if r.isOver() {
		return false
	}
	r.note(atomic.LoadInt64(&r.words.owner) != 0 ||
		atomic.LoadInt64(&r.words.inside) != 0)
	atomic.StoreInt64(&r.words.owner, r.me)
	entries := atomic.LoadInt64(&r.words.entries)
	r.wait()
	atomic.StoreInt64(&r.words.entries, entries+1)
	r.note(atomic.LoadInt64(&r.words.owner) != r.me ||
		atomic.LoadInt64(&r.words.inside) != 0)
	atomic.StoreInt64(&r.words.owner, 0)
	r.entered++
	return true
}

// Enters shared, with at most limit processes inside (0: any number).
func (r *region) together() bool {
	if r.isOver() {
		return false
	}
	inside := atomic.AddInt64(&r.words.inside, 1)
	r.note(atomic.LoadInt64(&r.words.owner) != 0 ||
		r.limit > 0 && inside > r.limit)
	r.wait()
	atomic.AddInt64(&r.words.shared, 1)
	r.note(atomic.LoadInt64(&r.words.owner) != 0)
	atomic.AddInt64(&r.words.inside, -1)
	r.entered++
	return true
}

// Returns the answer to contend.
func (r *region) done(longest time.Duration) string {
	return fmt.Sprintf("done entered=%d overlaps=%d stale=0 longest_us=%d",
		r.entered, r.overlaps, longest.Microseconds())
}
