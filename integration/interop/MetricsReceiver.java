import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/**
 * A plugin of a broker, `metric.reporters`, that writes each push of a client to a file of the directory which the system
 * property `metrics.directory` names: `CLIENT_ID INSTANCE_ID NUMBER last|more`.
 */
public class MetricsReceiver implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    private final Path directory = Path.of(System.getProperty("metrics.directory"));
    private final AtomicInteger number = new AtomicInteger();

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        ByteBuffer data = payload.data().duplicate();
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        String end = payload.isTerminating() ? "last" : "more";
        String name = String.join(" ", context.clientId(), payload.clientInstanceId().toString(), "" + number.incrementAndGet(), end);
        try {
            Path partial = Files.write(Files.createTempFile(directory, ".", ""), bytes);
            Files.move(partial, directory.resolve(name), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
    }

    @Override
    public void configure(Map<String, ?> configs) {}

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
