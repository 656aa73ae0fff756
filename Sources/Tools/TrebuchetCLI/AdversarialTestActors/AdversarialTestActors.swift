import Commands
import Synchronization
import Trebuchet
import TrebuchetServices

/// The actors that `serve --torment` hosts for adversarial tests, and a view of the server's counters.
enum AdversarialTestActors {
    /// The number of running methods and factories of these actors.
    static let underWay = Atomic(0)

    /// Limits with shorter times than the defaults, so that retained data expires within a test.
    static var limits: ServerLimits {
        var limits = ServerLimits()
        limits.calls.timeout = .seconds(10)
        limits.idempotency.retention = .seconds(2)
        limits.streams.resumeRetention = .seconds(2)
        limits.calls.maximumTimeout = .seconds(20)
        limits.activatedActors.total = 2_000
        limits.activatedActors.perConnection = 200
        return limits
    }

    /// Shorter limits for rooms.
    static var roomLimits: RoomLimits {
        var limits = RoomLimits()
        limits.reconnectTime = .milliseconds(500)
        limits.unjoinedRoomTime = .milliseconds(500)
        return limits
    }

    /// Shorter limits for collections, with little persisted data.
    static var collectionLimits: CollectionLimits {
        var limits = CollectionLimits()
        limits.idleTime = .milliseconds(500)
        limits.idleQueryTime = .milliseconds(500)
        limits.documentsPerCollection = 100
        limits.collectionBytes = 1 << 20
        return limits
    }

    /// Shorter limits for accounts, with little persisted data.
    static var authLimits: AuthLimits {
        var limits = AuthLimits()
        limits.accounts = 100
        limits.codeLifetime = .seconds(2)
        limits.refreshReuseWindow = .seconds(2)
        return limits
    }

    /// Rejects an address that is not loopback, since the counters must not be public.
    static func check(host: String) throws(UsageError) {
        guard ["127.0.0.1", "::1", "localhost"].contains(host) else {
            throw UsageError("--torment requires 127.0.0.1, ::1 or localhost as host, not \(host)")
        }
    }

    /// Exposes the actors:
    ///
    /// - `victim`: exists from the start;
    /// - `room/…` and `honest/…`: activated immediately;
    /// - `slow/300/…`: activated after 300 ms, at most 20,000;
    /// - `broken/…` and `broken/300/…`: activation fails, immediately or after 300 ms;
    /// - `debug`: the counters.
    static func expose(on server: TrebuchetServer) async {
        let system = server.actorSystem
        await server.expose(AdversarialTarget(actorSystem: system), as: "victim")
        await server.expose(AdversarialTestDebug(of: server, actorSystem: system), as: "debug")
        server.expose(AdversarialTarget.self, as: "honest/*") { _ in AdversarialTarget(actorSystem: system) }
        server.expose(AdversarialTarget.self, as: "room/*", idle: .seconds(1), discarding: true) { _ in
            AdversarialTarget(actorSystem: system)
        }
        server.expose(AdversarialTarget.self, as: "slow/*", idle: .seconds(1), discarding: true) { name in
            try await wait(for: name)
            return AdversarialTarget(actorSystem: system)
        }
        server.expose(AdversarialTarget.self, as: "broken/*") { name in
            try await wait(for: name)
            throw AdversarialTargetError(text: "'\(name.prefix(100))' cannot be activated")
        }
    }

    /// Waits for the number of milliseconds in the second part of the name.
    private static func wait(for name: String) async throws {
        underWay.add(1, ordering: .relaxed)
        defer { underWay.subtract(1, ordering: .relaxed) }
        let parts = name.split(separator: "/", maxSplits: 2)
        guard parts.count > 1, let milliseconds = Int(parts[1]), milliseconds > 0 else { return }
        try await Task.sleep(for: .milliseconds(min(milliseconds, 20_000)))
    }
}
