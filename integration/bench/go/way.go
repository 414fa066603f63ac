package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// way is the options for the broker and the way to it: TLS and a SCRAM login if the job asks for them.
func (j job) way() ([]kgo.Opt, error) {
	options := []kgo.Opt{kgo.SeedBrokers(j.Bootstrap)}
	if j.Security != "" {
		pem, err := os.ReadFile(j.CAFile)
		if err != nil {
			return nil, err
		}
		trusted := x509.NewCertPool()
		if !trusted.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no certificate in %s", j.CAFile)
		}
		options = append(options, kgo.DialTLSConfig(&tls.Config{RootCAs: trusted}))
	}
	if j.Username != "" {
		login := scram.Auth{User: j.Username, Pass: j.Password}
		options = append(options, kgo.SASL(login.AsSha512Mechanism()))
	}
	return options, nil
}
