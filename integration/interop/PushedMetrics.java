import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Java's clients produce and consume for some seconds, and print the ids that the broker assigned to them: arguments are
 * the bootstrap servers, a topic and the seconds.
 */
public class PushedMetrics {
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        long end = System.nanoTime() + Duration.ofSeconds(Long.parseLong(arguments[2])).toNanos();
        try (var producer = new KafkaProducer<>(way(arguments[0], "java-producer"), new StringSerializer(), new StringSerializer());
                var consumer = new KafkaConsumer<>(way(arguments[0], "java-consumer"), new StringDeserializer(), new StringDeserializer());
                var admin = Admin.create(way(arguments[0], "java-admin"))) {
            consumer.subscribe(List.of(topic));
            int number = 0;
            while (System.nanoTime() < end) {
                producer.send(new ProducerRecord<>(topic, "value-" + number++)).get();
                consumer.poll(Duration.ofMillis(50));
            }
            consumer.commitSync();
            System.out.println("java-producer " + producer.clientInstanceId(PATIENCE));
            System.out.println("java-consumer " + consumer.clientInstanceId(PATIENCE));
            System.out.println("java-admin " + admin.clientInstanceId(PATIENCE));
        }
    }

    private static Map<String, Object> way(String servers, String clientId) {
        return Map.of("bootstrap.servers", servers, "client.id", clientId, "group.id", "g-" + clientId, "auto.offset.reset", "earliest", "enable.metrics.push", true);
    }
}
