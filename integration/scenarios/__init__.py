"""The same scenarios on the embedded broker and on Kafka, from 0.8.2.2 to the current release."""
