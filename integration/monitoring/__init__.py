"""A real Prometheus scrapes a service, `aiokwire exporter` and `aiokwire broker --metrics`."""
