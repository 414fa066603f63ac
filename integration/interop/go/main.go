// franz-go logs in to a broker, produces values, and consumes them in a group: one job in as JSON on the standard input,
// the consumed values out as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 60 * time.Second

type job struct {
	Bootstrap string
	TLS       bool
	CAFile    string
	CertFile  string // of the client, with KeyFile
	KeyFile   string
	Mechanism string // empty: no SASL
	Username  string
	Password  string
	Token     string // of OAUTHBEARER
	Keytab    string // of GSSAPI
	Realm     string
	Krb5Conf  string
	Topic     string
	Values    [][]byte
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return fmt.Errorf("the job: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := produce(ctx, j); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	found, err := consume(ctx, j)
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func produce(ctx context.Context, j job) error {
	way, err := j.way()
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(append(way, kgo.DefaultProduceTopic(j.Topic))...)
	if err != nil {
		return err
	}
	defer client.Close()
	records := make([]*kgo.Record, len(j.Values))
	for n, value := range j.Values {
		records[n] = &kgo.Record{Value: value}
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

func consume(ctx context.Context, j job) ([][]byte, error) {
	way, err := j.way() // of its own: closing the producer has closed its Kerberos client
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(way,
		kgo.ConsumerGroup("g-"+j.Topic),
		kgo.ConsumeTopics(j.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var found [][]byte
	for len(found) < len(j.Values) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, record := range fetches.Records() {
			found = append(found, record.Value)
		}
	}
	return found, client.CommitUncommittedOffsets(ctx)
}
