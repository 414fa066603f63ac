package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const everySend = 16 // with many goroutines, one send in 16 is timed, as in tasks.py

// send is j.Tasks goroutines, each sending one record after the other, j.Count in all; without linger they are fastest.
func send(ctx context.Context, j job) (figures, error) {
	client, err := producer(ctx, j, 0)
	if err != nil {
		return figures{}, err
	}
	defer client.Close()
	value := j.value()
	step := int64(everySend)
	if j.Tasks == 1 {
		step = 1
	}
	var m meter
	var left atomic.Int64
	var failed atomic.Pointer[error]
	left.Store(int64(j.Count))
	sender := func() {
		for {
			mine := left.Add(-1)
			if mine < 0 {
				return
			}
			began := time.Now()
			if err := client.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr(); err != nil {
				failed.Store(&err)
				return
			}
			if mine%step == 0 {
				m.latency(time.Since(began))
			}
		}
	}
	var senders sync.WaitGroup
	m.start()
	for range j.Tasks {
		senders.Go(sender)
	}
	senders.Wait()
	done, err := m.stop(j.Count)
	if fault := failed.Load(); fault != nil {
		return figures{}, *fault
	}
	return done, err
}
