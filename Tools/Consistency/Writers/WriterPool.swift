import Foundation
import Platform
import Synchronization
import Trebuchet
import TrebuchetServices
import TrebuchetTesting

/// `Consistency write SEED PORTS COUNT STRICTNESS`: writers of a collection that are also members of a room, in a separate process. It prints
/// acknowledged writes, and reads commands from its input: `finish`, after which it writes nothing more, and `report`.
struct WriterPool: Sendable {
    let seed: UInt64
    let ports: [Int]
    let count: Int
    let strictness: Strictness
    private let isOver = Mutexed(false)

    init?(_ words: [String]) {
        guard words.count == 4, let seed = UInt64(words[0]), let ports = FaultyClientLinks.ports(words[1]),
            let count = Int(words[2]), let strictness = Strictness(rawValue: words[3])
        else { return nil }
        (self.seed, self.ports, self.count, self.strictness) = (seed, ports, count, strictness)
    }

    func run() async throws {
        var clients: [TrebuchetClient] = []
        // They last as long as these.
        var lines: [FaultyClientLinks] = []
        var members: [RoomMember] = []
        for number in 0..<count {
            let line = try FaultyClientLinks(
                to: ports, seed: seed &+ UInt64(number), faults: strictness == .ordered ? .none : .mild)
            let first = number % ports.count
            let known = line.ports[first...] + line.ports[..<first]
            let client = TrebuchetClient(
                transports: FaultyClientLinks.transports(Array(known)), options: Player.options)
            client.register(errors: CollectionError.self, RoomError.self)
            try await client.connect()
            clients.append(client)
            lines.append(line)
            members.append(await RoomMember(number, client, strictness))
        }
        try await found(clients[0])
        for member in members { await member.join() }
        Output.printLine("joined")
        let work = Task { [clients, members] in await write(clients, members) }
        let (commands, input) = AsyncStream<String>.makeStream()
        startThread {
            while let line = readLine() { input.yield(line) }
            // The judge has gone.
            exit(0)
        }
        for await line in commands {
            switch line {
            case "finish":
                isOver.set(true)
                // Other requests are answered meanwhile.
                Task { [members] in
                    await work.value
                    for member in members { await member.finish() }
                    Output.printLine("finished")
                }
            case "status":
                for line in ClientProgress.writers.lines { Output.printLine("status \(line)") }
            default:
                var reports: [MemberReport] = []
                for member in members { reports.append(await member.report) }
                Output.printLine("reports \(String(decoding: try JSONEncoder().encode(reports), as: UTF8.self))")
            }
        }
        withExtendedLifetime(lines) {}
    }

    /// Creates the document that all increment.
    private func found(_ client: TrebuchetClient) async throws {
        let command =
            #"[{"number":1,"command":{"create":{"id":"\#(Writing.shared)","fields":{"id":"\#(Writing.shared)","sum":0}}}}]"#
        while true {
            do {
                _ = try await client.call(
                    actor: Writing.collection, target: "commit(_:from:)",
                    arguments: [Array(command.utf8), Array("\"the founder of \(seed)\"".utf8)])
                return
            } catch  where Writing.mayBeRepeated(error) {}
        }
    }

    private func write(_ clients: [TrebuchetClient], _ members: [RoomMember]) async {
        let isOver = isOver
        await withTaskGroup(of: Void.self) { group in
            for (number, client) in clients.enumerated() {
                group.addTask {
                    var writer = CollectionWriter(number, client, seed: seed, strictness)
                    await writer.run { isOver.value }
                }
                group.addTask { await members[number].run { isOver.value } }
            }
            // One reader for each node's client; readers end with the process.
            for (number, client) in clients.enumerated().prefix(2) {
                let check = ResultCheck(strictness)
                Task {
                    var reader = CollectionReader(name: "reader \(number)", client: client, check: check)
                    await reader.run { false }
                }
            }
            await group.waitForAll()
        }
    }
}

/// A value that is read and written from several threads.
final class Mutexed<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    init(_ value: Value) { mutex = Mutex(value) }

    var value: Value { mutex.withLock { $0 } }
    func set(_ value: Value) { mutex.withLock { $0 = value } }
}
