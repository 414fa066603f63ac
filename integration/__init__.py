"""What only real parts can show: scenarios on several brokers, interop with other clients, and the benchmark."""
