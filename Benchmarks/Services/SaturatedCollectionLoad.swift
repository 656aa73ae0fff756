import Commands
import Foundation
import Networking
import Platform
import Synchronization

/// Measures durable writes to a collection over many connections, with open queries that they do not affect. The baselines are
/// the same load on a persisted actor of the same server, and SQLite alone.
struct SaturatedCollectionLoad {
    static let collection = "collections/bench"
    static let documents = 1_000
    private static let queries = 1_000
    private static let queriesOfReader = 50
    private static let connections = 64
    private static let inFlight = 8

    /// The folder of the data, which is removed afterwards.
    let folder: String
    let seconds: Double

    func run(into report: inout BenchReport) async throws {
        let own = "\(folder)/trebuchet-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: own, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: own) }
        report.add("fdatasync_per_second", try await SyncRate.measure(own + "/raw", seconds: min(seconds, 2)))
        Progress.printLine("SQLite alone…")
        let sqlite = PlainSQLite(path: own + "/plain.db", accounts: Self.documents, seconds: seconds)
        report.add("sqlite_us_per_transfer", 1e6 / (try await sqlite.run()))
        let server = try MeasuredServer(command: [
            "bench", "services-server", "--port", "0", "--data", own + "/data.db",
        ])
        defer { server.stop() }
        let group = try ReactorGroup.clients()
        let peer = try await ServicePeer.connect(to: server.url, group)
        _ = try await peer.call("bank", "open(_:)", ["\(Self.documents)"])
        try await transfer("actor_saturated", Self.connections, Self.inFlight, server, into: &report)
        try await transfer("actor_single", 1, 1, server, into: &report)
        try await fill(peer)
        try await write("collection_saturated_0_queries", Self.connections, Self.inFlight, server, into: &report)
        let readers = try await open(server, group)
        try await write("collection_saturated", Self.connections, Self.inFlight, server, into: &report)
        try await write("collection_single", 1, 1, server, into: &report)
        let updates = await group.reactors[0].perform { readers.map(\.streamMessages).reduce(0, +) }
        report.add("updates_of_other_queries", updates)
        await group.reactors[0].perform { for peer in readers + [peer] { peer.close() } }
    }

    private func fill(_ peer: ServicePeer) async throws {
        let padding = String(repeating: "x", count: 100)
        for first in stride(from: 0, to: Self.documents, by: 32) {
            let mutations = (first..<min(first + 32, Self.documents)).map {
                #"{"number":\#($0 + 1),"command":{"create":{"id":"d\#($0)","fields":{"id":"d\#($0)","owner":\#($0),"n":0,"#
                    + #""x":"\#(padding)"}}}}"#
            }
            _ = try await peer.call(
                Self.collection, "commit(_:from:)",
                ["[" + mutations.joined(separator: ",") + "]", #""bench-fill-0123456789abcdef""#])
        }
    }

    /// Opens queries that no write affects.
    private func open(_ server: MeasuredServer, _ group: ReactorGroup) async throws -> [ServicePeer] {
        Progress.printLine("\(Self.queries) queries…")
        var readers: [ServicePeer] = []
        for first in stride(from: 0, to: Self.queries, by: Self.queriesOfReader) {
            let reader = try await ServicePeer.connect(to: server.url, group)
            readers.append(reader)
            for number in first..<first + Self.queriesOfReader {
                let query =
                    #"{"conditions":[{"field":"owner","comparison":"equal","value":\#(1_000_000 + number)}],"order":[]}"#
                try await reader.observe(Self.collection, query)
            }
        }
        try await Task.sleep(for: .seconds(1))
        let counted = readers
        await group.reactors[0].perform { for reader in counted { reader.beginCounting() } }
        return readers
    }

    private func write(
        _ name: String, _ connections: Int, _ inFlight: Int, _ server: MeasuredServer, into report: inout BenchReport
    ) async throws {
        let script = CommitScript(connections: connections, inFlight: inFlight)
        let load = RequestLoad(messages: Array(repeating: [], count: inFlight), script: script)
        try await measure(name, load, connections, server, into: &report)
        if let failure = script.failure { throw UsageError("\(name): \(script.failed) writes failed: \(failure)") }
    }

    private func transfer(
        _ name: String, _ connections: Int, _ inFlight: Int, _ server: MeasuredServer, into report: inout BenchReport
    ) async throws {
        let script = TransferScript(accounts: Self.documents, inFlight: inFlight, seed: 1)
        let load = RequestLoad(messages: script.messages, script: script)
        try await measure(name, load, connections, server, into: &report)
        guard script.failed == 0 else { throw UsageError("\(name): \(script.failed) transfers failed") }
    }

    private func measure(
        _ name: String, _ load: RequestLoad, _ connections: Int, _ server: MeasuredServer,
        into report: inout BenchReport
    ) async throws {
        Progress.printLine("\(name)…")
        let process = try server.knownProcess()
        let (time, written) = (try process.processorTime(), try process.writtenBytes())
        let figures = try await load.run(
            url: server.url, subprotocols: [Invocation.subprotocol], connections: connections, seconds: seconds)
        let writes = Double(max(1, load.answers.load(ordering: .relaxed)))
        guard figures["errors"] == 0 else { throw UsageError("\(name): calls failed, or connections ended") }
        report.add("\(name)_per_second", figures["messages_per_second"] ?? 0)
        report.add("\(name)_server_us", Double(try process.processorTime() - time) / 1_000 / writes)
        report.add("\(name)_bytes_written", Double(try process.writtenBytes() - written) / writes)
        report.add("\(name)_p50_us", figures["p50_us"] ?? 0)
        report.add("\(name)_p99_us", figures["p99_us"] ?? 0)
    }
}

/// Commits of one update each, and their outcomes. Each slot of a connection is a client that numbers its writes.
///
/// `@unchecked Sendable`: passed to a load before it runs, used on the load's reactor only, and read after its end.
private final class CommitScript: RequestScript, @unchecked Sendable {
    private let inFlight: Int
    private var random = RandomSource(seed: 1)
    /// The ends of the messages, with the secret of each client.
    private let tails: [[UInt8]]
    private let head: [UInt8]
    private let middle: [UInt8]
    /// The last number of each client.
    private var numbers: [Int]
    private(set) var failed = 0
    /// The first response with an error.
    private(set) var failure: String?

    init(connections: Int, inFlight: Int) {
        self.inFlight = inFlight
        let run = UInt64.random(in: .min ... .max)
        numbers = Array(repeating: 0, count: connections * inFlight)
        tails = numbers.indices.map { Array(#"}}}}],"bench-\#($0)-\#(run)-0123456789"]}}"#.utf8) }
        let whole = Invocation.text(SaturatedCollectionLoad.collection, "commit(_:from:)", ["?"], id: "?")
        let parts = whole.split(separator: "?").map { Array($0.utf8) }
        (head, middle) = (parts[0], parts[1] + Array(#"[{"number":"#.utf8))
    }

    func write(_ message: inout [UInt8], connection: Int, slot: Int) {
        let client = connection * inFlight + slot
        numbers[client] += 1
        let number = numbers[client]
        let document = Int.random(in: 0..<SaturatedCollectionLoad.documents, using: &random)
        message.removeAll(keepingCapacity: true)
        // The next call of a slot may be sent before the response to its last one: responses may come in another order.
        message += head
        message += "\(client)-\(number)".utf8
        message += middle
        message += #"\#(number),"command":{"update":{"id":"d\#(document)","fields":{"n":\#(number)"#.utf8
        message += tails[client]
    }

    func read(_ answer: UnsafeRawBufferPointer) {
        // An outcome without an error ends with its revision.
        let end = answer.suffix(5)
        guard !end.dropFirst().elementsEqual("}]}}".utf8) || end.first == UInt8(ascii: "}") else { return }
        failed += 1
        if failure == nil { failure = String(decoding: answer.prefix(300), as: UTF8.self) }
    }
}
