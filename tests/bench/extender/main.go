// Measures topolet-extender: what its calls cost (calls), and how many pods a kube-scheduler binds in a second with and
// without it (throughput). `run` beside this file builds what is needed and starts it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: bench-extender calls|cluster|throughput [OPTION…]; calls --help prints the options"))
	}
	var err error
	switch arguments := os.Args[2:]; os.Args[1] {
	case "calls":
		err = runCalls(ctx, arguments)
	case "cluster":
		err = runCluster(ctx, arguments)
	case "throughput":
		err = runThroughput(ctx, arguments)
	default:
		err = fmt.Errorf("there is no section %s", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench-extender:", err)
	os.Exit(1)
}

func parse(flags *flag.FlagSet, arguments []string) error {
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %s", flags.Arg(0))
	}
	return nil
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
