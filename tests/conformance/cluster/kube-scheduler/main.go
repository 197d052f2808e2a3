// The scheduler of Kubernetes with the plugin NodeResourceTopologyMatch.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology"

	// Makes the arguments of the plugin known to the configuration.
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(noderesourcetopology.Name, noderesourcetopology.New))))
}
