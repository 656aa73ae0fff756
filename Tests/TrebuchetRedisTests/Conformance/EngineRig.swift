import Foundation
import TestSupport
import Testing
import TrebuchetCluster
import TrebuchetStore

@testable import TrebuchetRedis

/// Engines that are to do the same.
enum EngineKind: CaseIterable, Sendable {
    case memory
    case redis
    case sqlite

    static let withTables: [EngineKind] = [.memory, .redis]
}

/// One engine for one test, as two nodes have it.
final class EngineRig: Sendable {
    /// Leases that are to run out, and those that are not.
    static let short = Duration.milliseconds(30)
    static let long = Duration.seconds(3_600)

    let one: any ClusterEngine
    let other: any ClusterEngine
    private let clock: ManualEngineClock?
    private let server: RedisServer?
    /// Of a store's file.
    private let folder: URL?

    init(_ kind: EngineKind, limits: ClusterEngineLimits = ClusterEngineLimits()) throws {
        switch kind {
        case .memory:
            let clock = ManualEngineClock()
            let engine = MemoryEngine(limits: limits, clock: clock)
            (one, other, self.clock, server, folder) = (engine, engine, clock, nil, nil)
        case .redis:
            let server = try #require(SharedRedisServer.current)
            let prefix = "test-\(UUID())"
            one = try RedisEngine(url: server.url, prefix: prefix, limits: limits)
            other = try RedisEngine(url: server.url, prefix: prefix, limits: limits)
            (clock, self.server, folder) = (nil, server, nil)
        case .sqlite:
            let folder = FileManager.default.temporaryDirectory.appending(path: "trebuchet-engine-\(UUID())")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            var options = SQLiteStore.Options()
            options.durability = .processEnd
            let store = try SQLiteStore(path: folder.appending(path: "cluster.db").path, options: options)
            let clock = ManualEngineClock()
            let engine = SQLiteEngine(over: store, limits: limits, clock: clock)
            (one, other, self.clock, server, self.folder) = (engine, engine, clock, nil, folder)
        }
    }

    deinit { if let folder { try? FileManager.default.removeItem(at: folder) } }

    /// Returns when a short lease has run out.
    func passLease(of slot: ClusterSlot) async throws {
        clock?.advance(by: Self.short)
        #expect(try await eventually { try await one.owner(of: slot) == nil })
    }

    /// Returns when a node that was announced for a short time is forgotten.
    func passNode(_ node: ClusterNode) async throws {
        clock?.advance(by: Self.short)
        #expect(try await eventually { try await one.nodes().allSatisfy { $0.node != node } })
    }

    /// Returns when what was lent for a short time is gone.
    func passLoans(_ names: [String], of table: ClusterTable) async throws {
        clock?.advance(by: Self.short)
        #expect(try await eventually { try await one.values(names, of: table).allSatisfy { $0 == nil } })
    }

    /// With a clock of its own a short time is over; with a server's it comes to that by itself.
    func passTime() { clock?.advance(by: Self.short) }

    /// The engine forgets all that it has of this test.
    func loseEverything() async throws {
        (one as? MemoryEngine)?.loseEverything()
        // The tests of a suite come one after another.
        try await server?.cli("FLUSHALL")
    }

    /// Whoever listens may have missed something, of whichever test.
    func breakSubscriptions() async throws {
        (one as? MemoryEngine)?.breakSubscriptions()
        (one as? SQLiteEngine)?.breakSubscriptions()
        try await server?.cli("CLIENT", "KILL", "TYPE", "pubsub")
    }
}
