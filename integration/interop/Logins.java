import java.io.FileInputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Java's clients log in, produce and consume in a group: arguments are the number of records, then pairs of a properties
 * file and a topic; the answer is a line for each pair, the consumed values or the error.
 */
public class Logins {
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    public static void main(String[] arguments) {
        int count = Integer.parseInt(arguments[0]);
        for (int at = 1; at < arguments.length; at += 2) {
            System.out.println(answer(arguments[at], arguments[at + 1], count));
        }
    }

    private static String answer(String file, String topic, int count) {
        try (FileInputStream input = new FileInputStream(file)) {
            Properties way = new Properties();
            way.load(input);
            produce(way, topic, count);
            return String.join(" ", consume(way, topic, count));
        } catch (Exception error) {
            return ("error " + error + " " + error.getCause()).replace('\n', ' ');
        }
    }

    private static void produce(Properties way, String topic, int count) throws Exception {
        try (var producer = new KafkaProducer<>(way, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, "value-" + number)).get();
            }
        }
    }

    private static List<String> consume(Properties way, String topic, int count) {
        Properties reading = new Properties();
        reading.putAll(way);
        reading.put("group.id", "g-" + topic);
        reading.put("auto.offset.reset", "earliest");
        List<String> found = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            while (found.size() < count && System.nanoTime() < deadline) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> found.add(record.value()));
            }
            consumer.commitSync();
        }
        return found;
    }
}
