import Foundation
import Relays
import SharedState
import Synchronization
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient

/// Cached query results in files.
@Suite(.timeLimit(.minutes(5))) struct QueryResultCacheTests {
    private final class Bench: Sendable {
        let folder: TemporaryFolder
        let offline: OfflineFolder
        let log = Mutex<[String]>([])
        /// Writes are delayed by a second.
        let pause = StateRelay(false)

        init() throws {
            folder = try TemporaryFolder()
            offline = OfflineFolder(URL(fileURLWithPath: folder.path), DiskFileStorage.secrets)
        }

        func results(server: String = "ws://a:1", limit: Int = 1 << 20) -> QueryResultCache {
            QueryResultCache(
                in: offline, server: server, limit: limit, log: { [self] line in log.withLock { $0.append(line) } }
            ) { [pause] in
                for await isOver in pause.stream where isOver { return }
            }
        }

        var files: [String] {
            let names = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
            return names.filter { $0.hasSuffix(".result") }.map { folder.path + "/" + $0 }
        }
    }

    private func result(_ titles: [String], revision: Int = 1) -> QueryResult {
        var result = QueryResult()
        result.revision = revision
        result.documents = KeyedCollection(titles.map { Document.todo(DocumentID($0)) })
        return result
    }

    private func keep(
        _ result: QueryResult, in results: QueryResultCache, _ query: CollectionQuery = .all, for account: ClientAccount
    ) {
        results.storeResult(result, from: Date(timeIntervalSince1970: 1_000.5), of: query, in: "todos", for: account) {
            true
        }
    }

    private func ids(
        _ results: QueryResultCache, _ query: CollectionQuery = .all, in collection: String = "todos",
        for account: ClientAccount
    ) -> [String]? {
        results.result(of: query, in: collection, for: account)?.documents.map { "\($0.id)" }
    }

    @Test("a result is cached for its server, account, collection and query only")
    func keys() throws {
        let bench = try Bench()
        let results = bench.results()
        let query = CollectionQuery(where: [.field("a", equals: .object(["x": .integer(1), "y": .null]))], limit: 2)
        keep(result(["1", "2"], revision: 7), in: results, query, for: .user("ada"))
        results.close()
        let again = bench.results()
        let cached = try #require(again.result(of: query, in: "todos", for: .user("ada")))
        #expect(
            cached.documents.map { "\($0.id)" } == ["1", "2"] && cached.revision == 7 && cached.syncedAt == 1_000.5)
        #expect(ids(again, for: .user("ada")) == nil)
        #expect(ids(again, CollectionQuery(where: query.conditions, limit: 3), for: .user("ada")) == nil)
        #expect(ids(again, query, in: "todo", for: .user("ada")) == nil)
        for other in [ClientAccount.user("bob"), .user("../ada"), .signedOut, .client] {
            #expect(ids(again, query, for: other) == nil)
        }
        #expect(ids(bench.results(server: "ws://b:1"), query, for: .user("ada")) == nil)
        // A file at another result's path is recognized by its content.
        let file = try #require(bench.files.first)
        keep(result(["3"]), in: again, query, for: .user("bob"))
        again.close()
        let other = try #require(bench.files.first { $0 != file })
        try Data(contentsOf: URL(fileURLWithPath: file)).write(to: URL(fileURLWithPath: other))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: other)
        #expect(ids(bench.results(), query, for: .user("bob")) == nil)
        #expect(bench.log.withLock { $0.count } == 1)
    }

    @Test("files are private; a damaged or exposed one is ignored, and logged")
    func damaged() throws {
        let bench = try Bench()
        let damages: [(Data) -> Data] = [
            { _ in Data() }, { $0.dropLast() }, { Data("{".utf8) + $0.dropFirst() },
            { data in
                var data = data
                data[data.count - 12] ^= 1
                return data
            },
        ]
        for (number, damage) in damages.enumerated() {
            let results = bench.results()
            keep(result(["1"]), in: results, for: .signedOut)
            results.close()
            let file = URL(fileURLWithPath: try #require(bench.files.first))
            var status = stat()
            #expect(stat(file.path, &status) == 0 && status.st_mode & 0o777 == 0o600)
            #expect(stat(file.deletingLastPathComponent().path, &status) == 0 && status.st_mode & 0o777 == 0o700)
            try DiskFileStorage().replace(file, with: damage(try Data(contentsOf: file)))
            #expect(ids(bench.results(), for: .signedOut) == nil, "\(number)")
            #expect(bench.files.isEmpty)
            #expect(bench.log.withLock { $0.count } == number + 1)
        }
        let results = bench.results()
        keep(result(["1"]), in: results, for: .signedOut)
        results.close()
        let file = try #require(bench.files.first)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        #expect(ids(bench.results(), for: .signedOut) == nil)
        #expect(bench.log.withLock { $0.last?.contains("chmod 600") } == true)
    }

    @Test("the latest of several results within a second is written, once, and the rest when the cache is closed")
    func coalesced() async throws {
        let bench = try Bench()
        let results = bench.results()
        for number in 1...100 { keep(result(["\(number)"]), in: results, for: .signedOut) }
        #expect(bench.files.isEmpty && ids(results, for: .signedOut) == nil)
        bench.pause.update(true)
        #expect(await eventually { ids(results, for: .signedOut) == ["100"] })
        bench.pause.update(false)
        keep(result(["101"]), in: results, for: .signedOut)
        results.close()
        #expect(ids(results, for: .signedOut) == ["101"])
        keep(result(["102"]), in: results, for: .signedOut)
        results.close()
        #expect(ids(results, for: .signedOut) == ["101"], "a closed cache is not written")
        bench.pause.update(true)
    }

    @Test(
        "the least recently used results are evicted when the limit of bytes is reached; an oversized one is not cached"
    )
    func limit() throws {
        let bench = try Bench()
        func query(_ number: Int) -> CollectionQuery { CollectionQuery(limit: number) }
        for number in 1...3 {
            let results = bench.results()
            keep(result(["\(number)"]), in: results, query(number), for: .signedOut)
            results.close()
        }
        let bytes = try bench.files.map { try Data(contentsOf: URL(fileURLWithPath: $0)).count }.max() ?? 0
        #expect(ids(bench.results(), query(1), for: .signedOut) == ["1"], "this result counts as used")
        let results = bench.results(limit: 3 * bytes + bytes / 2)
        keep(result(["4"]), in: results, query(4), for: .user("ada"))
        try Data().write(to: URL(fileURLWithPath: try #require(bench.files.first) + ".half"))
        results.close()
        #expect(ids(results, query(2), for: .signedOut) == nil)
        #expect(ids(results, query(1), for: .signedOut) == ["1"] && ids(results, query(3), for: .signedOut) == ["3"])
        #expect(ids(results, query(4), for: .user("ada")) == ["4"])
        #expect(bench.files.count == 3)
        let left = FileManager.default.enumerator(atPath: bench.folder.path)?.compactMap { $0 as? String } ?? []
        #expect(!left.contains { $0.hasSuffix(".half") }, "files left by a crash are removed")
        let small = bench.results(limit: 3 * bytes)
        keep(result((1...100).map { "\($0)" }), in: small, query(1), for: .signedOut)
        small.close()
        #expect(ids(small, query(1), for: .signedOut) == nil && ids(small, query(3), for: .signedOut) == ["3"])
    }

    @Test("cached results of an account are removed, including those not yet written, and no others")
    func removed() throws {
        let bench = try Bench()
        let before = bench.results()
        for account in [ClientAccount.user("ada"), .user("bob")] { keep(result(["1"]), in: before, for: account) }
        before.close()
        let results = bench.results()
        keep(result(["2"]), in: results, for: .user("ada"))
        results.remove(of: .user("ada"))
        results.storeResult(result(["3"]), from: Date(), of: .all, in: "todos", for: .user("ada")) { false }
        results.close()
        #expect(ids(results, for: .user("ada")) == nil && ids(results, for: .user("bob")) == ["1"])
        #expect(bench.files.count == 1)
        bench.pause.update(true)
    }
}
