// redsync as a peer. `go build -mod=mod` adds the rest.
module holdfast/redsync

go 1.26.0

require (
	github.com/go-redsync/redsync/v4 v4.18.1
	github.com/redis/go-redis/v9 v9.23.0
)
