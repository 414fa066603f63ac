package main

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	partitions     = 4
	latencySamples = 20_000
	distinctValues = 1_000
)

// job is Job in meter.py.
type job struct {
	Task        string `json:"task"`
	Bootstrap   string `json:"bootstrap"`
	Topic       string `json:"topic"`
	Count       int    `json:"count"`
	ValueSize   int    `json:"value_size"`
	Tasks       int    `json:"tasks"`
	Compression string `json:"compression"`
	Security    string `json:"security"`
	CAFile      string `json:"cafile"`
	Username    string `json:"username"`
	Password    string `json:"password"`
}

// value is one value: half of it random, as in real data.
func (j job) value() []byte {
	value := make([]byte, j.ValueSize)
	half := j.ValueSize / 2
	rand.Read(value[:half])
	for i := half; i < len(value); i++ {
		value[i] = 'x'
	}
	return value
}

// values are those that a produce job sends in turn, as many as in meter.py and for the same reason.
func (j job) values() [][]byte {
	values := make([][]byte, distinctValues)
	for n := range values {
		values[n] = j.value()
	}
	return values
}

// figures is Figures in meter.py.
type figures struct {
	Count     int                `json:"count"`
	Seconds   float64            `json:"seconds"`
	CPU       float64            `json:"cpu"`
	PeakMiB   float64            `json:"peak_mib"`
	Latencies map[string]float64 `json:"latencies"`
}

// meter is Meter in meter.py; latency may be called by many goroutines at once.
type meter struct {
	wall    time.Time
	cpu     float64
	samples [latencySamples]time.Duration
	sampled atomic.Int64
}

// start is called when the client is connected and has its topic's metadata.
func (m *meter) start() {
	m.cpu = cpuSeconds()
	m.wall = time.Now()
}

// latency adds one awaited send, up to a limit.
func (m *meter) latency(took time.Duration) {
	if at := m.sampled.Add(1) - 1; at < latencySamples {
		m.samples[at] = took
	}
}

// stop is called when the last record is acknowledged, or returned to the caller.
func (m *meter) stop(count int) (figures, error) {
	done := figures{Count: count, Seconds: time.Since(m.wall).Seconds(), CPU: cpuSeconds() - m.cpu}
	done.Latencies = m.percentiles()
	var err error
	done.PeakMiB, err = peakMiB()
	return done, err
}

func (m *meter) percentiles() map[string]float64 {
	kept := slices.Clone(m.samples[:min(m.sampled.Load(), latencySamples)])
	found := map[string]float64{}
	if len(kept) == 0 {
		return found
	}
	slices.Sort(kept)
	for name, share := range map[string]float64{"p50": 0.5, "p99": 0.99} {
		at := int(math.RoundToEven(float64(len(kept)-1) * share))
		found[name] = kept[at].Seconds() * 1e3
	}
	return found
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // it fails for bad arguments only
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

func peakMiB() (float64, error) {
	status, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			var kib float64
			if _, err := fmt.Sscanf(rest, "%f kB", &kib); err != nil {
				return 0, err
			}
			return kib / 1024, nil
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no VmHWM")
}
