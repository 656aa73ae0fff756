import Foundation
import TestSupport
import Testing
import TrebuchetCluster
import TrebuchetStore

@testable import TrebuchetRedis

/// The engines under test, which must behave identically.
enum EngineKind: CaseIterable, Sendable {
    case memory
    case redis
    case sqlite

    static let withTables: [EngineKind] = [.memory, .redis]
}

/// One engine for one test, as seen by two nodes.
final class EngineRig: Sendable {
    /// The duration of leases that are to expire, and of those that are not.
    static let short = Duration.milliseconds(30)
    static let long = Duration.seconds(3_600)

    let one: any ClusterEngine
    let other: any ClusterEngine
    private let clock: ManualEngineClock?
    private let server: RedisServer?
    /// The folder of a store's file.
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

    /// Returns when a short lease has expired.
    func passLease(of slot: ClusterSlot) async throws {
        clock?.advance(by: Self.short)
        #expect(try await eventually { try await one.owner(of: slot) == nil })
    }

    /// Returns when a node announced for a short time is no longer listed.
    func passNode(_ node: ClusterNode) async throws {
        clock?.advance(by: Self.short)
        #expect(try await eventually { try await one.nodes().allSatisfy { $0.node != node } })
    }

    /// Returns when values put for a short time have expired.
    func waitForExpiry(_ names: [String], of table: ClusterTable) async throws {
        clock?.advance(by: Self.short)
        #expect(try await eventually { try await one.values(names, of: table).allSatisfy { $0 == nil } })
    }

    /// Lets the short duration pass: advances a manual clock; a server's clock advances anyway.
    func passTime() { clock?.advance(by: Self.short) }

    /// Deletes all data of the engine.
    func loseEverything() async throws {
        (one as? MemoryEngine)?.loseEverything()
        // The tests of a suite run one after another.
        try await server?.cli("FLUSHALL")
    }

    /// Interrupts all subscriptions of the server, also those of other tests, so that messages may be missed.
    func breakSubscriptions() async throws {
        (one as? MemoryEngine)?.breakSubscriptions()
        (one as? SQLiteEngine)?.breakSubscriptions()
        try await server?.cli("CLIENT", "KILL", "TYPE", "pubsub")
    }
}
