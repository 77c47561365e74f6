// Every component of the control plane and of the node, and kubectl, as one program: which one it is follows from the
// name that it is called by. One program instead of seven, because they are nearly all the same code: linked once, it
// takes a seventh of the room and of the linker's time.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// served runs a component until it ends and leaves with its exit code.
func served(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}

var components = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          served(apiserver.NewAPIServerCommand),
	"kube-controller-manager": served(controllers.NewControllerManagerCommand),
	"kube-proxy":              served(proxy.NewProxyCommand),
	"kube-scheduler":          served(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet":                 served(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kubectl": func() {
		// kubectl prints its own errors and has exit codes of its own.
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
	},
}

func main() {
	name := filepath.Base(os.Args[0])
	if run, known := components[name]; known {
		run()
		return
	}
	names := make([]string, 0, len(components))
	for known := range components {
		names = append(names, known)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "%s is none of %v: call it by a link of one of these names\n", name, names)
	os.Exit(2)
}
