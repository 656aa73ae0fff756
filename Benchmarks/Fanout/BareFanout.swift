import CBareFanout
import Commands
import Glibc

/// `trebuchet bench bare-fanout`: sends the data that one connection publishes to all others, in C, using system calls only,
/// until it is killed. The baseline of one core, for `bench fanout --bare`.
enum BareFanout {
    static let command = CommandSpec(
        name: "bench bare-fanout",
        summary: "host a bare TCP fan-out on one thread, with system calls only",
        options: [
            OptionSpec("--port", "PORT", "port to listen on at 127.0.0.1; 0 selects a free one (9000)"),
            OptionSpec("--tick", "BYTES", "size of each message of the publisher, whose first byte is p (100)"),
            OptionSpec("--size", "BYTES", "size of the message to each subscriber (200)"),
        ],
        run: run)

    private static func run(_ arguments: ParsedArguments) async throws {
        let (listener, port) = try BareListener.listen(try arguments.int("--port", in: 0...65535) ?? 9000)
        let tick = try arguments.int("--tick", in: 1...4096) ?? 100
        let size = try arguments.int("--size", in: 1...(1 << 16)) ?? 200
        Console.announce("fans out on tcp://127.0.0.1:\(port) (bare)")
        throw UsageError(
            "the fan-out ended: \(String(cString: strerror(bare_fanout(listener, Int32(tick), Int32(size)))))")
    }
}
