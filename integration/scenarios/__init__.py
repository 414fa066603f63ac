"""The same stories on the embedded broker and on real Kafka, from 0.8.2.2 to the current release."""
