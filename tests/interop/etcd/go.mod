// Go's clients as peers, and a current server. `go mod tidy` adds the rest.
module holdfast/interop

go 1.26.0

require (
	go.etcd.io/etcd/client/v3 v3.7.3
	go.etcd.io/etcd/server/v3 v3.7.3
)
