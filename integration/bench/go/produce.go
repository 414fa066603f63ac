package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The fastest options here, at the least CPU: records from a pool as in its own benchmark, and a partitioner that
// keeps its partition until a batch is full, where the default changes it after 64 KiB.
const (
	produceLinger   = 5 * time.Millisecond
	batchBytes      = 1_000_000
	bufferedRecords = 200_000
	bufferedBytes   = 64 << 20
)

// producer is idempotent with acks=all, as franz-go is by default; it has sent one record, so that it is connected and
// has its topic's metadata.
func producer(ctx context.Context, j job, linger time.Duration) (*kgo.Client, error) {
	codec := kgo.NoCompression()
	if j.Compression == "lz4" {
		codec = kgo.Lz4Compression()
	} else if j.Compression != "none" {
		return nil, fmt.Errorf("no compression %q here", j.Compression)
	}
	options, err := j.way()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(options,
		kgo.DefaultProduceTopic(j.Topic),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerLinger(linger),
		kgo.ProducerBatchMaxBytes(batchBytes),
		kgo.MaxBufferedRecords(min(bufferedRecords, bufferedBytes/j.ValueSize)),
		kgo.RecordPartitioner(kgo.UniformBytesPartitioner(batchBytes, true, true, nil)),
	)...)
	if err != nil {
		return nil, err
	}
	if err := client.ProduceSync(ctx, &kgo.Record{Value: j.value()}).FirstErr(); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

func produce(ctx context.Context, j job) (figures, error) {
	client, err := producer(ctx, j, produceLinger)
	if err != nil {
		return figures{}, err
	}
	defer client.Close()
	values := j.values()
	records := sync.Pool{New: func() any { return new(kgo.Record) }}
	acknowledged := 0
	var failed error
	delivered := func(record *kgo.Record, err error) { // one call at a time
		if err == nil {
			acknowledged++
		} else if failed == nil {
			failed = err
		}
		*record = kgo.Record{}
		records.Put(record)
	}
	var m meter
	m.start()
	for n := range j.Count {
		record := records.Get().(*kgo.Record)
		record.Value = values[n%len(values)]
		client.Produce(ctx, record, delivered)
	}
	if err := client.Flush(ctx); err != nil {
		return figures{}, err
	}
	done, err := m.stop(j.Count)
	if acknowledged != j.Count {
		return figures{}, fmt.Errorf("%d of %d records were acknowledged: %w", acknowledged, j.Count, failed)
	}
	return done, err
}
