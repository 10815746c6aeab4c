// The last but one line of servers. `go mod tidy` adds the rest.
module holdfast/etcd35

go 1.23.0

require go.etcd.io/etcd/server/v3 v3.5.21
