import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own assignors, asked over standard input, one line a question:
 *
 *   assign NAME TOPICS MEMBERS    TOPICS   topic:rack.rack,rack,... (racks of each partition);...
 *                                 MEMBERS  id,instance,hex of the subscription;...
 *                                 answer   id=topic-0+topic-1;...
 *   remember NAME GENERATION PARTITIONS    answer   hex of the user data that a member with that assignment sends
 */
public class Assignors {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        StringBuilder answers = new StringBuilder();
        while (lines.hasNextLine()) {
            String[] asked = lines.nextLine().split(" ", -1);
            answers.append(
                    asked[0].equals("assign")
                            ? assign(named(asked[1]), asked[2], asked[3])
                            : remember(named(asked[1]), Integer.parseInt(asked[2]), asked[3]));
            answers.append('\n');
        }
        System.out.print(answers);
    }

    private static ConsumerPartitionAssignor named(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static String assign(ConsumerPartitionAssignor assignor, String topics, String members) {
        Map<String, Subscription> subscriptions = new TreeMap<>();
        for (String member : members.split(";")) {
            String[] parts = member.split(",", -1);
            Subscription subscription =
                    ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(HexFormat.of().parseHex(parts[2])));
            subscription.setGroupInstanceId(parts[1].isEmpty() ? Optional.empty() : Optional.of(parts[1]));
            subscriptions.put(parts[0], subscription);
        }
        Map<String, Assignment> assignments =
                new TreeMap<>(assignor.assign(cluster(topics), new GroupSubscription(subscriptions)).groupAssignment());
        List<String> answer = new ArrayList<>();
        assignments.forEach((member, assignment) -> answer.add(member + "=" + joined(assignment.partitions())));
        return String.join(";", answer);
    }

    private static String joined(List<TopicPartition> partitions) {
        return String.join("+", partitions.stream().map(TopicPartition::toString).sorted().toList());
    }

    private static Cluster cluster(String topics) {
        List<PartitionInfo> infos = new ArrayList<>();
        Map<String, Node> nodes = new TreeMap<>();
        for (String topic : topics.split(";")) {
            String name = topic.substring(0, topic.indexOf(':'));
            int number = 0;
            for (String racks : topic.substring(topic.indexOf(':') + 1).split(",", -1)) {
                List<Node> replicas = new ArrayList<>();
                for (String rack : racks.split("\\.", -1)) {
                    if (!rack.isEmpty()) {
                        replicas.add(nodes.computeIfAbsent(rack, one -> new Node(nodes.size(), "host", 1, one)));
                    }
                }
                Node[] all = replicas.toArray(new Node[0]);
                infos.add(new PartitionInfo(name, number++, all.length > 0 ? all[0] : null, all, all));
            }
        }
        return new Cluster("cluster", nodes.values(), infos, Set.of(), Set.of());
    }

    private static String remember(ConsumerPartitionAssignor assignor, int generation, String partitions) {
        List<TopicPartition> had = new ArrayList<>();
        for (String partition : partitions.split("\\+")) {
            int dash = partition.lastIndexOf('-');
            had.add(new TopicPartition(partition.substring(0, dash), Integer.parseInt(partition.substring(dash + 1))));
        }
        assignor.onAssignment(
                new Assignment(had), new ConsumerGroupMetadata("group", generation, "member", Optional.empty()));
        ByteBuffer data = assignor.subscriptionUserData(Set.of());
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
