import Commands
import Foundation
import Networking
import Platform
import TrebuchetServices

/// Measures a collection of the maximum size: the longest wait of another client while the collection is loaded, sorted by new
/// orders, listed, written to and removed.
struct LargeCollectionLoad {
    private static let collection = "bench"
    private static let actor = "collections/" + collection
    private static let rules = """
        {"collections":{"*":{"read":"anyone","create":"anyone","update":"anyone","delete":"anyone",
        "limits":{"documents":100000,"bytes":67108864,"writesPerSecond":100000,"writesAtOnce":100000}}}}
        """
    private static let padding = String(repeating: "p", count: 300)

    let documents: Int

    func run(into report: inout BenchReport) async throws {
        let folder = NSTemporaryDirectory() + "trebuchet-bench-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let data = folder + "/data.db"
        try Data(Self.rules.utf8).write(to: URL(fileURLWithPath: folder + "/rules.json"))
        let options = ["--services", "collections", "--examples", "--data", data, "--rules", folder + "/rules.json"]
        let group = try ReactorGroup.clients()

        var server = try MeasuredServer(options)
        defer { server.stop() }
        var scene = try await Scene(server, data, group)
        try await scene.phase("large_quiet", into: &report) { _ in try await Task.sleep(for: .seconds(2)) }
        try await scene.phase("large_import", into: &report) { try await fill($0.admin) }
        server.stop()
        server = try MeasuredServer(options)
        scene = try await Scene(server, data, group)

        func get(_ query: String) -> (Scene) async throws -> Void {
            { _ = try await $0.peer.call(Self.actor, "get(_:)", [query]) }
        }
        func order(_ field: String) -> String {
            #"{"conditions":[],"order":[{"field":"\#(field)","isDescending":false}],"limit":20}"#
        }
        try await scene.phase("large_loading", into: &report, get(order("m")))
        try await scene.phase("large_new_order", into: &report, get(order("title")))
        try await scene.phase("large_rewriting", into: &report) { try await fill($0.admin, replacing: true) }
        try await scene.phase("large_all", into: &report, get(#"{"conditions":[],"order":[]}"#))
        // One connection may not have 50 queries that each find nearly all documents.
        var readers: [ServicePeer] = []
        for _ in 0..<5 { readers.append(try await ServicePeer.connect(to: server.url, group)) }
        try await scene.phase("large_50_queries", into: &report) { _ in
            for number in 0..<50 {
                let query =
                    #"{"conditions":[{"field":"m","comparison":"greater","value":\#(number * 10)}],"#
                    + #""order":[{"field":"m","isDescending":false}],"limit":5}"#
                try await readers[number % readers.count].observe(Self.actor, query)
            }
        }
        try await scene.phase("large_writes", into: &report) { scene in
            for first in stride(from: 0, to: 640, by: 32) {
                let mutations = (first..<first + 32).map {
                    #"{"number":\#($0 + 1),"command":{"update":{"id":"d\#($0)","fields":{"m":\#($0 % 7)}}}}"#
                }
                let list = "[" + mutations.joined(separator: ",") + "]"
                _ = try await scene.peer.call(Self.actor, "commit(_:from:)", [list, #""bench-0123456789abcdef""#])
            }
        }
        try await scene.phase("large_listing", into: &report) { scene in
            var last: String?
            repeat {
                let page = AdminRequest.documents(collection: Self.collection, after: last, limit: 1000)
                let answer = try await scene.admin.request(page)
                guard case .documents(let found) = answer else { throw AdminClient.unexpected(answer) }
                last = found.last?.id.description
            } while last != nil
        }
        try await scene.phase("large_removal", into: &report) { scene in
            while case .removed(5_000) = try await scene.admin.request(
                .removeOldest(collection: Self.collection, limit: 5_000))
            {}
        }
        for reader in readers { reader.close() }
        await scene.end()
    }

    /// Imports the documents as `admin import` does, or replaces them.
    private func fill(_ admin: AdminClient, replacing: Bool = false) async throws {
        for first in stride(from: 0, to: documents, by: 100) {
            let part = (first..<min(first + 100, documents)).map { number in
                Document(
                    id: DocumentID("d\(number)"),
                    fields: [
                        "id": .string("d\(number)"), "n": .number(Double(number % 1000)),
                        "m": .number(Double(number &* 7_919 % 1_000_003)),
                        "title": .string("title \(number &* 104_729 % 999_983)"), "pad": .string(Self.padding),
                        "isNew": .bool(replacing),
                    ])
            }
            let answer = try await admin.request(
                .restore(collection: Self.collection, documents: part, replaces: replacing))
            guard case .restored(let outcome) = answer, outcome.created + outcome.replaced == part.count else {
                throw UsageError("the documents were not accepted: \(answer)")
            }
        }
    }

    /// A server with an administrator, a working client, and a client that calls continuously.
    private struct Scene {
        let admin: AdminClient
        let peer: ServicePeer
        private let watch: Watch
        private let watching: Task<Void, Never>

        init(_ server: MeasuredServer, _ data: String, _ group: ReactorGroup) async throws {
            admin = AdminClient(link: try .connect(to: AdminSocket.path(forData: data)))
            peer = try await ServicePeer.connect(to: server.url, group)
            let (watch, other) = (Watch(), try await ServicePeer.connect(to: server.url, group))
            self.watch = watch
            watching = Task {
                do {
                    while !Task.isCancelled {
                        let start = MonotonicClock.now
                        _ = try await other.call("counter", "add(_:)", ["0"])
                        await watch.add(MonotonicClock.now - start)
                        try await Task.sleep(for: .milliseconds(2))
                    }
                } catch {
                    await watch.end(error)
                }
            }
        }

        /// Runs `body`, and reports its duration and the longest wait of the other client meanwhile.
        func phase(
            _ name: String, into report: inout BenchReport, _ body: (Scene) async throws -> Void
        ) async throws {
            Progress.printLine("\(name)…")
            _ = await watch.take()
            let start = MonotonicClock.now
            try await body(self)
            let time = MonotonicClock.now - start
            // Include the wait that has started meanwhile.
            let count = await watch.count
            while try await watch.waits(after: count) { try await Task.sleep(for: .milliseconds(1)) }
            report.add(name + "_ms", Double(time) / 1e6)
            report.add(name + "_longest_wait_ms", Double(await watch.take()) / 1e6)
        }

        func end() async {
            watching.cancel()
            await watching.value
        }
    }

    /// Records the longest wait since the last query.
    private actor Watch {
        private(set) var count = 0
        private var longest: UInt64 = 0
        private var error: (any Error)?

        func end(_ error: any Error) { self.error = error }

        /// Returns whether no further wait has completed since; throws if there will be none.
        func waits(after count: Int) throws -> Bool {
            if let error { throw error }
            return self.count == count
        }

        func add(_ wait: UInt64) {
            count += 1
            longest = max(longest, wait)
        }

        func take() -> UInt64 {
            defer { longest = 0 }
            return longest
        }
    }
}
