package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

func consume(ctx context.Context, j job) (figures, error) {
	options, err := j.way()
	if err != nil {
		return figures{}, err
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return figures{}, err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return figures{}, err
	}
	offsets := map[int32]kgo.Offset{}
	for partition := range int32(partitions) {
		offsets[partition] = kgo.NewOffset().AtStart()
	}
	var m meter
	m.start()
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{j.Topic: offsets})
	seen, size := 0, 0
	for seen < j.Count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return figures{}, err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			seen++
			size += len(record.Value)
		})
	}
	done, err := m.stop(seen)
	if size < seen*j.ValueSize {
		return figures{}, fmt.Errorf("%d records had %d bytes", seen, size)
	}
	return done, err
}
