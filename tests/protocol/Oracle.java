import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Reads messages with Kafka's own classes and writes them again: "class version hex" a line in, hex or a complaint out. */
public class Oracle {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        StringBuilder answers = new StringBuilder();
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split(" ", -1);
            answers.append(answer(parts[0], Short.parseShort(parts[1]), parts[2])).append('\n');
        }
        System.out.print(answers);
    }

    private static String answer(String name, short version, String hex) {
        try {
            Message message =
                    (Message) Class.forName("org.apache.kafka.common.message." + name).getConstructor().newInstance();
            if (version < message.lowestSupportedVersion() || version > message.highestSupportedVersion()) {
                return "unsupported";
            }
            ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
            message.read(new ByteBufferAccessor(buffer), version);
            if (buffer.hasRemaining()) {
                return "left over: " + buffer.remaining();
            }
            ObjectSerializationCache cache = new ObjectSerializationCache();
            byte[] written = new byte[message.size(cache, version)];
            message.write(new ByteBufferAccessor(ByteBuffer.wrap(written)), cache, version);
            return HexFormat.of().formatHex(written);
        } catch (ClassNotFoundException error) {
            return "unsupported";
        } catch (Exception | LinkageError error) {
            return "failed: " + error;
        }
    }
}
