import Commands
import Networking
import Platform
import TrebuchetServices

/// Measures a collection with many open queries and one writer: the cost of a write for the server, and the traffic to readers
/// that it does not affect.
struct CollectionLoad {
    private static let collection = "collections/bench"
    /// The queries of one reader, below the limit of a connection.
    private static let queriesOfReader = 50

    let documents: Int
    let seconds: Double

    /// - Parameter queries: the number of different queries `owner = …`; each write affects one of them.
    func run(_ server: MeasuredServer, queries: Int, into report: inout BenchReport) async throws {
        let group = try ReactorGroup.clients()
        let reactor = group.reactors[0]
        let writer = try await ServicePeer.connect(to: server.url, group)
        let client = "bench-\(queries)-0123456789abcdef"
        var number = 0
        /// Sends consecutive calls, each with the maximum number of commands.
        func commit(_ commands: [String]) async throws {
            let mutations = commands.map { command in
                number += 1
                return #"{"number":\#(number),"command":\#(command)}"#
            }
            let outcomes = try await writer.call(
                Self.collection, "commit(_:from:)", ["[" + mutations.joined(separator: ",") + "]", "\"\(client)\""])
            guard case .array(let outcomes) = outcomes, outcomes.count == commands.count else {
                throw UsageError("the collection accepted \(outcomes) of \(commands.count) writes")
            }
            for case .object(let outcome) in outcomes where outcome["error"] != nil {
                throw UsageError("a write was rejected: \(outcome["error"] ?? .null)")
            }
        }
        let padding = String(repeating: "x", count: 100)
        if queries == 10 {
            for first in stride(from: 0, to: documents, by: 32) {
                try await commit(
                    (first..<min(documents, first + 32)).map {
                        #"{"create":{"id":"d\#($0)","fields":{"id":"d\#($0)","owner":\#($0),"n":0,"x":"\#(padding)"}}}"#
                    })
                // Stay within the write rate of a connection.
                try await Task.sleep(for: .milliseconds(160))
            }
        }
        var readers: [ServicePeer] = []
        for first in stride(from: 0, to: queries, by: Self.queriesOfReader) {
            let reader = try await ServicePeer.connect(to: server.url, group)
            readers.append(reader)
            for owner in first..<min(queries, first + Self.queriesOfReader) {
                let query = #"{"conditions":[{"field":"owner","comparison":"equal","value":\#(owner)}],"order":[]}"#
                try await reader.observe(Self.collection, query)
            }
        }
        try await Task.sleep(for: .seconds(1))
        let counted = readers
        await reactor.perform { for reader in counted { reader.beginCounting() } }
        let process = try server.knownProcess()
        let before = try process.processorTime()
        let start = MonotonicClock.now
        var writes = 0
        var latency = Histogram()
        // Stay below the call rate of a connection; always write a document of one of the first ten queries.
        while MonotonicClock.seconds(since: start) < seconds {
            let begun = MonotonicClock.now
            try await commit([#"{"update":{"id":"d\#(writes % 10)","fields":{"n":\#(writes + 1)}}}"#])
            latency.add(MonotonicClock.now - begun)
            writes += 1
            try await Task.sleep(for: .milliseconds(6))
        }
        let worked = Double(try process.processorTime() - before) / 1e9
        let (messages, bytes) = await reactor.perform {
            (counted.map(\.streamMessages), counted.map(\.streamBytes).reduce(0, +))
        }
        let all = messages.reduce(0, +)
        let name = "collection_\(queries)_queries"
        report.add("\(name)_writes", writes)
        report.add("\(name)_server_us_per_write", worked * 1e6 / Double(writes))
        report.add("\(name)_messages_per_write", Double(all) / Double(writes))
        report.add("\(name)_bytes_per_write", Double(bytes) / Double(writes))
        report.add("\(name)_messages_to_others", all - (messages.first ?? 0))
        report.add("\(name)_p50_us", latency.microseconds(0.5))
        report.add("\(name)_p99_us", latency.microseconds(0.99))
        await reactor.perform {
            for reader in counted { reader.close() }
            writer.close()
        }
    }
}
