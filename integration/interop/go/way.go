package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// way is the options for the broker and the way to it: TLS and the login that the job asks for.
func (j job) way() ([]kgo.Opt, error) {
	options := []kgo.Opt{kgo.SeedBrokers(j.Bootstrap)}
	if j.TLS {
		config, err := j.tls()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if j.Mechanism != "" {
		login, err := j.login()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.SASL(login))
	}
	return options, nil
}

func (j job) tls() (*tls.Config, error) {
	pem, err := os.ReadFile(j.CAFile)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", j.CAFile)
	}
	found := &tls.Config{RootCAs: trusted}
	if j.CertFile != "" {
		own, err := tls.LoadX509KeyPair(j.CertFile, j.KeyFile)
		if err != nil {
			return nil, err
		}
		found.Certificates = []tls.Certificate{own}
	}
	return found, nil
}

func (j job) login() (sasl.Mechanism, error) {
	password := scram.Auth{User: j.Username, Pass: j.Password}
	switch j.Mechanism {
	case "PLAIN":
		return plain.Auth{User: j.Username, Pass: j.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return password.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return password.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		return oauth.Auth{Token: j.Token}.AsMechanism(), nil
	case "GSSAPI":
		return j.kerberos()
	}
	return nil, fmt.Errorf("no mechanism %q here", j.Mechanism)
}

func (j job) kerberos() (sasl.Mechanism, error) {
	conf, err := config.Load(j.Krb5Conf)
	if err != nil {
		return nil, err
	}
	keys, err := keytab.Load(j.Keytab)
	if err != nil {
		return nil, err
	}
	user := client.NewWithKeytab(j.Username, j.Realm, keys, conf, client.DisablePAFXFAST(true))
	return kerberos.Auth{Client: user, Service: "kafka"}.AsMechanismWithClose(), nil
}
