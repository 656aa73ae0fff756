import CBareFanout
import Commands
import Glibc

/// `trebuchet bench bare-fanout`: sends what one connection publishes to all others, in C, with nothing but system calls, until it is
/// killed. What the machine can do with one core, for `bench fanout --bare` to stand beside.
enum BareFanout {
    static let command = CommandSpec(
        name: "bench bare-fanout",
        summary: "a bare fan-out over TCP on one thread, with nothing but system calls",
        options: [
            OptionSpec("--port", "PORT", "port to listen on, at 127.0.0.1; 0 takes a free one (9000)"),
            OptionSpec("--tick", "BYTES", "of each message of the publisher, whose first byte is p (100)"),
            OptionSpec("--size", "BYTES", "that each of the others gets for that (200)"),
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
