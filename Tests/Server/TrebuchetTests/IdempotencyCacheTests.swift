import Networking
import TestSupport
import Testing
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Outcomes of calls and repeats over time; calls are letters.
@Suite struct IdempotencyCacheTests {
    typealias Memory = IdempotencyCache<String>

    var memory: Memory
    var quotas: QuotaLedger

    init() { (memory, quotas) = Self.memory { _ in } }

    /// With room for two responses of a connection and three in all, unless changed.
    static func memory(_ change: (inout ServerLimits) -> Void) -> (Memory, QuotaLedger) {
        var limits = ServerLimits()
        limits.idempotency.total = 3
        limits.idempotency.perConnection = 2
        limits.idempotency.totalBytes = 2_000
        change(&limits)
        let quotas = QuotaLedger(limits: limits)
        let each = Memory.Limits(
            client: limits.ofClient, server: limits.ofServer,
            time: 100)
        return (Memory(each, quotas), quotas)
    }

    static let first = CallSessionID(number: 1, secret: 11)
    static let second = CallSessionID(number: 2, secret: 22)
    static let third = CallSessionID(number: 3, secret: 33)

    /// The result of `recordCall` as text; `run` for a call that runs.
    mutating func recordCall(
        _ connection: CallSessionID, _ number: UInt64, _ call: String = "a", digest: UInt64 = 1,
        by principal: String? = nil,
        from host: String? = nil, again: Bool = false, at now: UInt64 = 0
    ) -> String {
        let name = Memory.Name(connection: connection, number: number)
        let request = Memory.Request(digest: digest, principal: principal, isRepeat: again, host: Self.host(host))
        return switch memory.recordCall(name, request, call, at: now) {
        case nil: "run"
        case .waits(let first, nil): "waits for \(first)"
        case .waits(let first, let dropped?): "waits for \(first) instead of \(dropped)"
        case .answered(.success(let bytes)): String(decoding: bytes, as: UTF8.self)
        case .answered(.failure(let error)): "\(error.code)"
        case .forgotten: "refused: unknownOutcome"
        case .exceeded(let exceeded): "refused: rateLimited \(exceeded.limit.setting)"
        case .refused(let error): "refused: \(error.code)"
        }
    }

    static func host(_ text: String?) -> AddressKey? {
        text.flatMap { SocketAddress(literal: $0, port: 1) }.flatMap { AddressKey($0) }.flatMap {
            $0.isLoopback ? nil : $0
        }
    }

    @discardableResult
    mutating func recordResponse(
        _ connection: CallSessionID, _ number: UInt64, _ answer: String = "1", at now: UInt64 = 0
    ) -> [String] {
        memory.recordResponse(
            Memory.Name(connection: connection, number: number), .success(Array(answer.utf8)), at: now)
    }

    @Test("a call runs once: a repeat waits for its response, and a later repeat receives it at once")
    mutating func once() {
        #expect(recordCall(Self.first, 7, "a") == "run")
        #expect(recordCall(Self.first, 7, "b", again: true) == "waits for a")
        #expect(recordCall(Self.first, 7, "c", again: true) == "waits for a")
        #expect(recordResponse(Self.first, 7, "42") == ["a", "b", "c"])
        #expect(recordResponse(Self.first, 7, "43") == [], "the first end counts")
        #expect(recordCall(Self.first, 7, "d", again: true) == "42")
    }

    @Test("sixteen repeats wait for one response, and each further one replaces the oldest")
    mutating func mostWaiting() {
        #expect(recordCall(Self.first, 7, "a") == "run")
        for number in 1...15 { #expect(recordCall(Self.first, 7, "b\(number)", again: true) == "waits for a") }
        #expect(recordCall(Self.first, 7, "c", again: true) == "waits for a instead of b1")
        #expect(recordCall(Self.first, 7, "d", again: true) == "waits for a instead of b2")
        #expect(recordResponse(Self.first, 7, "42") == ["a"] + (3...15).map { "b\($0)" } + ["c", "d"])
        #expect(recordCall(Self.first, 7, "c", again: true) == "42")
    }

    @Test("a result after the call's deadline replaces the error, where there is room for it")
    mutating func amended() {
        (memory, quotas) = Self.memory { $0.idempotency.bytesPerConnection = 1_000 }
        let name = Memory.Name(connection: Self.first, number: 7)
        for (result, again) in [("42", "42"), (String(repeating: "x", count: 2_000), "timeout")] {
            #expect(recordCall(Self.first, 7) == "run")
            memory.replaceTimeout(name, .success(Array("41".utf8)))
            _ = memory.recordResponse(name, .failure(TrebuchetError(.timeout, "late")), at: 0)
            memory.replaceTimeout(name, .success(Array(result.utf8)))
            #expect(recordCall(Self.first, 7, again: true) == again)
            memory.replaceTimeout(name, .failure(TrebuchetError(.cancelled, "")))
            memory.removeExpired(at: 1_000)
            #expect(memory.bytes == 0 && memory.count == 0 && quotas.count(.recordedResponseBytes) == 0)
            (memory, quotas) = Self.memory { $0.idempotency.bytesPerConnection = 1_000 }
        }
    }

    @Test("an error is a recorded response, too")
    mutating func failure() {
        #expect(recordCall(Self.first, 7) == "run")
        let name = Memory.Name(connection: Self.first, number: 7)
        _ = memory.recordResponse(name, .failure(TrebuchetError(.application, "no")), at: 0)
        #expect(recordCall(Self.first, 7, again: true) == "application")
    }

    @Test("a repeat whose first message was lost runs; a repeat that arrives first also runs once")
    mutating func neverCame() {
        #expect(recordCall(Self.first, 7, "a", again: true) == "run")
        #expect(recordCall(Self.first, 7, "b", again: true) == "waits for a")
    }

    @Test("equal numbers of different connections are different calls")
    mutating func connections() {
        #expect(recordCall(Self.first, 7) == "run")
        #expect(recordCall(Self.second, 7) == "run")
        let guessed = CallSessionID(number: Self.first.number, secret: 99)
        #expect(recordCall(guessed, 7, again: true) == "run")
    }

    @Test("sign-in on a connection separates its calls from those of the previous principal")
    mutating func signingIn() {
        #expect(recordCall(Self.first, 1) == "run")
        recordResponse(Self.first, 1, "1")
        #expect(recordCall(Self.first, 2, by: "ada") == "run")
        recordResponse(Self.first, 2, "2")
        #expect(recordCall(Self.first, 2, by: "ada") == "2")
        #expect(recordCall(Self.first, 1, by: "ada") == "refused: unknownOutcome")
    }

    @Test("another principal receives neither the response nor whether one exists")
    mutating func principals() {
        #expect(recordCall(Self.first, 7, by: "ada") == "run")
        #expect(recordCall(Self.first, 7, by: "bob", again: true) == "refused: unknownOutcome")
        #expect(recordCall(Self.first, 8, by: "bob", again: true) == "refused: unknownOutcome")
        recordResponse(Self.first, 7)
        #expect(recordCall(Self.first, 7, by: nil, again: true) == "refused: unknownOutcome")
        #expect(recordCall(Self.first, 7, by: "ada", again: true) == "1")
    }

    @Test("another call under the same number is rejected, while the first runs and afterwards")
    mutating func otherRequest() {
        #expect(recordCall(Self.first, 7, digest: 1) == "run")
        #expect(recordCall(Self.first, 7, digest: 2, again: true) == "refused: invalidArguments")
        recordResponse(Self.first, 7)
        #expect(recordCall(Self.first, 7, digest: 2, again: true) == "refused: invalidArguments")
    }

    @Test("a response expires; afterwards a repeat has an unknown outcome")
    mutating func time() {
        #expect(recordCall(Self.first, 7) == "run")
        recordResponse(Self.first, 7, at: 1_000)
        #expect(recordCall(Self.first, 7, again: true, at: 1_099) == "1")
        #expect(recordCall(Self.first, 7, again: true, at: 1_100) == "refused: unknownOutcome")
        #expect(
            recordCall(Self.first, 6, again: true, at: 1_100) == "refused: unknownOutcome",
            "the first message may have arrived before")
        #expect(recordCall(Self.first, 8, again: true, at: 1_100) == "run", "a later call cannot have expired")
    }

    @Test("an expired call stays expired when responses arrive in another order than calls")
    mutating func forgottenOutOfOrder() {
        #expect(recordCall(Self.first, 7) == "run")
        #expect(recordCall(Self.first, 8) == "run")
        recordResponse(Self.first, 8, at: 0)
        recordResponse(Self.first, 7, at: 1)
        memory.removeExpired(at: 200)
        #expect(recordCall(Self.first, 8, again: true, at: 200) == "refused: unknownOutcome")
        #expect(recordCall(Self.first, 7, again: true, at: 200) == "refused: unknownOutcome")
    }

    @Test("a running call does not expire, however long it takes")
    mutating func longCall() {
        #expect(recordCall(Self.first, 7, "a") == "run")
        #expect(recordCall(Self.first, 7, "b", again: true, at: 1_000_000) == "waits for a")
    }

    @Test("a closed connection is removed with its last response, and its calls do not run again")
    mutating func endedSession() {
        #expect(recordCall(Self.second, 7) == "run")
        recordResponse(Self.second, 7)
        memory.close(Self.second)
        #expect(recordCall(Self.second, 7, again: true, at: 99) == "1")
        memory.removeExpired(at: 100)
        #expect(memory.connectionCount == 0)
        #expect(recordCall(Self.second, 7, again: true, at: 100) == "refused: unknownOutcome")
        #expect(recordCall(Self.second, 8, again: true, at: 100) == "refused: unknownOutcome")
        #expect(
            recordCall(Self.first, 1, again: true, at: 100) == "refused: unknownOutcome", "an earlier one, perhaps, too"
        )
        #expect(recordCall(Self.first, 1, at: 100) == "run", "over the connection itself it is the first call")
        #expect(recordCall(Self.third, 1, again: true, at: 100) == "run", "nothing of a later one expired")
    }

    @Test("a connection without calls leaves no record behind")
    mutating func emptySession() {
        #expect(recordCall(Self.first, 7) == "run")
        memory.close(Self.first)
        #expect(memory.connectionCount == 1, "it runs")
        recordResponse(Self.first, 7)
        memory.removeExpired(at: 1_000)
        memory.close(Self.second)
        #expect((memory.connectionCount, memory.count, memory.bytes) == (0, 0, 0))
    }

    @Test("when the cache is full, new calls are rejected and the recorded responses stay")
    mutating func full() {
        #expect(recordCall(Self.first, 1) == "run")
        #expect(recordCall(Self.first, 2) == "run")
        #expect(recordCall(Self.first, 3) == "refused: rateLimited idempotency.perConnection")
        #expect(recordCall(Self.second, 1) == "run")
        #expect(recordCall(Self.second, 2) == "refused: rateLimited idempotency.total")
        recordResponse(Self.first, 1)
        #expect(recordCall(Self.second, 2, at: 99) == "refused: rateLimited idempotency.total")
        #expect(recordCall(Self.first, 1, again: true, at: 99) == "1")
        #expect(recordCall(Self.second, 2, at: 100) == "run")
    }

    /// The caller, its host and connection, and the limit that is then reached, if any.
    struct Step {
        let (connection, principal, host): (UInt64, String?, String?)
        let outcome: String

        init(_ connection: UInt64, _ principal: String?, _ host: String?, _ outcome: String = "run") {
            (self.connection, self.principal, self.host) = (connection, principal, host)
            self.outcome = outcome == "run" ? outcome : "refused: rateLimited \(outcome)"
        }
    }
}
