// Confluent's parallel-consumer with key order, at least once, its default commit mode and a thread per handler.
// Arguments: name=value for each field of a job, see meter.py. Prints the same figures.

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.io.FileOutputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Parallel {
    static final AtomicLong count = new AtomicLong();
    static final Map<String, String> job = new HashMap<>();

    public static void main(String[] args) throws Exception {
        for (String each : args) {
            int at = each.indexOf('=');
            job.put(each.substring(0, at), each.substring(at + 1));
        }
        long millis = (long) Double.parseDouble(job.get("handler_ms"));
        long slowMillis = (long) Double.parseDouble(job.get("slow_ms"));
        long slowEvery = Long.parseLong(job.get("slow_every"));
        FileOutputStream journal = job.get("journal").isEmpty() ? null : new FileOutputStream(job.get("journal"), true);
        ParallelStreamProcessor<byte[], byte[]> processor = processor();
        processor.subscribe(List.of(job.get("topic")));
        processor.poll(context -> {
            long offset = context.offset();
            long pause = slowEvery > 0 && offset % slowEvery == 0 ? slowMillis : millis;
            try {
                if (pause > 0) Thread.sleep(pause);
                if (journal != null) {
                    String partition = String.valueOf(context.getSingleConsumerRecord().partition());
                    journal.write((partition + " " + offset + "\n").getBytes(StandardCharsets.US_ASCII));
                }
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
            count.incrementAndGet();
        });
        int status = 1;
        try {
            if (journal == null) measure(); else waitUntilIdle();
            status = 0;
        } finally {
            Runtime.getRuntime().halt(status);
        }
    }

    static ParallelStreamProcessor<byte[], byte[]> processor() {
        Properties properties = new Properties();
        properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, job.get("bootstrap"));
        properties.put(ConsumerConfig.GROUP_ID_CONFIG, job.get("group"));
        properties.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        properties.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, "10000");
        properties.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        properties.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        properties.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        return ParallelStreamProcessor.createEosStreamProcessor(
                ParallelConsumerOptions.<byte[], byte[]>builder()
                        .consumer(new KafkaConsumer<byte[], byte[]>(properties))
                        .ordering(ProcessingOrder.KEY)
                        .maxConcurrency(Integer.parseInt(job.get("concurrency")))
                        .build());
    }

    static void measure() throws Exception {
        waitForFirst();
        Thread.sleep((long) (1e3 * Double.parseDouble(job.get("warm_up"))));
        long records = Long.parseLong(job.get("records"));
        long window = (long) (1e9 * Double.parseDouble(job.get("seconds")));
        if (count.get() >= records) throw new IllegalStateException("all records were handled before the window");
        long began = System.nanoTime(), cpu = cpu(), before = count.get(), now = began;
        while (now < began + window && count.get() < records) {
            Thread.sleep(5);
            now = System.nanoTime();
        }
        System.out.println(String.format(Locale.ROOT,
                "{\"count\": %d, \"seconds\": %.6f, \"cpu\": %.6f, \"peak_mib\": %.1f}",
                count.get() - before, (now - began) / 1e9, (cpu() - cpu) / 1e9, peakMib()));
        System.out.flush();
    }

    static void waitForFirst() throws Exception {
        long limit = System.nanoTime() + 40_000_000_000L;
        while (count.get() == 0) {
            if (System.nanoTime() > limit) throw new IllegalStateException("no record within 40 s");
            Thread.sleep(5);
        }
    }

    static void waitUntilIdle() throws Exception {
        waitForFirst();
        long before = -1;
        while (before != count.get()) {
            before = count.get();
            Thread.sleep(4000);
        }
    }

    static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    static double peakMib() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) return Long.parseLong(line.replaceAll("\\D", "")) / 1024.0;
        }
        return 0;
    }
}
