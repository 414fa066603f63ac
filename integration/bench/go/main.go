// franz-go as a client of the benchmark: one job in as a JSON argument, its figures out as JSON, as in worker.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

const gcPercent = 400 // a tenth less CPU than with Go's default, for some more memory

var tasks = map[string]func(context.Context, job) (figures, error){
	"produce": produce,
	"consume": consume,
	"send":    send,
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: %s JOB", os.Args[0])
	}
	var j job
	if err := json.Unmarshal([]byte(os.Args[1]), &j); err != nil {
		return fmt.Errorf("the job: %w", err)
	}
	task, known := tasks[j.Task]
	if !known {
		return fmt.Errorf("franz-go has no task %q", j.Task)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // the parent process ends it sooner
	defer cancel()
	debug.SetGCPercent(gcPercent)
	done, err := task(ctx, j)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(done)
}
