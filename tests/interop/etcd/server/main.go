// etcd, as its own main does it: a module that replaces others cannot be
// installed by name.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
