import Networking
import Platform
import Synchronization
import Testing
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

@Trebuchet
private distributed actor RatedActor {
    distributed func slow() -> Int { 1 }
    distributed func quick() -> Int { 2 }
}

@Trebuchet
private distributed actor UnratedActor {
    distributed func slow() -> Int { 3 }
}

/// Rates; times are in nanoseconds.
@Suite("Rates at their limits") struct RatesTests {
    private static let second: UInt64 = 1_000_000_000

    @Test("a bucket admits its burst at once, then one call each time it refills, and never more than its burst")
    func bucket() {
        var bucket = TokenBucket(RateLimit(callsPerSecond: 4, burst: 2), now: Self.second)
        #expect(bucket.isFull(at: Self.second))
        for _ in 0..<2 { #expect(bucket.consume(at: Self.second) == nil) }
        #expect(bucket.consume(at: Self.second) == 250)
        #expect(bucket.consume(at: Self.second + 100_000_000) == 150)
        #expect(bucket.consume(at: Self.second + 249_999_999) == 1)
        #expect(bucket.consume(at: Self.second + 250_000_000) == nil)
        // A clock that goes backwards adds no tokens.
        #expect(bucket.consume(at: Self.second) == 250)
        #expect(!bucket.isFull(at: 0))
        #expect(!bucket.isFull(at: Self.second + 749_000_000))
        #expect(bucket.isFull(at: Self.second + 750_000_000))
        for _ in 0..<2 { #expect(bucket.consume(at: 100 * Self.second) == nil) }
        #expect(bucket.consume(at: 100 * Self.second) == 250)
    }

    @Test("calls are limited by method, connection and principal, and the first exceeded limit is named")
    func connection() {
        var limits = ServerLimits()
        limits.calls.rate.perMethod[RatedMethod("slow()", of: RatedActor.self)] = RateLimit(callsPerSecond: 1, burst: 1)
        limits.calls.rate.perConnection = RateLimit(callsPerSecond: 1, burst: 2)
        let principals = ShardedBuckets<PrincipalName>(RateLimit(callsPerSecond: 1, burst: 3))
        let ada = Principal(id: "ada")
        let rates = limits.calls.rate
        let type = ActorTypes.entry(of: RatedActor.self)
        func take(_ target: String, _ buckets: ConnectionBuckets, _ principal: Principal?) -> String? {
            buckets.consume(target, of: type, rates, principals, principal, at: Self.second).map {
                "\($0.what) \($0.milliseconds)"
            }
        }
        let (one, other, third) = (ConnectionBuckets(), ConnectionBuckets(), ConnectionBuckets())
        #expect(take("slow()", one, ada) == nil)
        #expect(take("slow()", one, ada) == "calls of slow() 1000")
        #expect(take("quick()", one, ada) == nil)
        #expect(take("quick()", one, ada) == "calls of this connection 1000")
        // Another connection has a separate bucket; the principal has one.
        #expect(take("slow()", other, ada) == nil)
        #expect(take("quick()", other, ada) == "calls of 'ada' 1000")
        #expect(take("quick()", third, nil) == nil)
        #expect(take("quick()", third, nil) == nil)
        let free = ConnectionBuckets()
        for _ in 0..<100 {
            #expect(free.consume("slow()", of: type, ServerLimits.CallRates(), nil, ada, at: Self.second) == nil)
        }
        let (unrated, unknown) = (ConnectionBuckets(), ConnectionBuckets())
        for _ in 0..<2 {
            let other = ActorTypes.entry(of: UnratedActor.self)
            #expect(unrated.consume("slow()", of: other, rates, nil, nil, at: Self.second) == nil)
            #expect(unknown.consume("slow()", of: nil, rates, nil, nil, at: Self.second) == nil)
        }
    }

    /// Returns whether calls of a method leave the fast path.
    private func isChecked(_ name: String, _ type: ActorType) -> Bool? {
        var name = name
        return name.withUTF8 { bytes in
            type.method(UnsafeRawBufferPointer(bytes))?.takeUnretainedValue().isChecked.load(ordering: .relaxed)
        }
    }

    @Test("the rate of a method applies at its server to its type, and other methods stay on the fast path")
    func methods() async throws {
        let (rated, unrated) = (ActorTypes.entry(of: RatedActor.self), ActorTypes.entry(of: UnratedActor.self))
        var limits = ServerLimits()
        limits.calls.rate.perMethod[RatedMethod("slow()", of: RatedActor.self)] = RateLimit(
            callsPerSecond: 0.001, burst: 1)
        for limits in [limits, ServerLimits()] {
            let server = TrebuchetServer(transport: .webSocket(port: 0), reactors: 1, limits: limits)
            await server.expose(RatedActor(actorSystem: server.actorSystem), as: "rated")
            await server.expose(UnratedActor(actorSystem: server.actorSystem), as: "unrated")
            #expect(isChecked("slow()", rated) == true)
            #expect(isChecked("quick()", rated) == false && isChecked("slow()", unrated) == false)
            let shard = server.shards[0]
            let isGuarded = await shard.reactor.perform { shard.isGuarded }
            #expect(!isGuarded)
            let client = TrebuchetClient(transport: .local(server))
            try await client.connect()
            let actor = try client.resolve(RatedActor.self, id: "rated")
            #expect(try await actor.slow() == 1)
            if limits.calls.rate.perMethod.isEmpty {
                #expect(try await actor.slow() == 1)
            } else {
                let error = await #expect(throws: TrebuchetError.self) { try await actor.slow() }
                #expect(error?.message.hasPrefix("too many calls of slow()") == true, "\(error?.message ?? "")")
            }
            #expect(try await actor.quick() == 2)
            for _ in 0..<2 { #expect(try await client.resolve(UnratedActor.self, id: "unrated").slow() == 3) }
            await client.close()
            await server.shutdown(drain: .zero)
        }
    }

    @Test("a full table evicts the next bucket in its rotation, and inspects all in turn")
    func table() {
        var table = BucketTable<Int>(RateLimit(callsPerSecond: 1, burst: 1), capacity: 2)
        #expect(table.consume(1, at: 0) == nil)
        #expect(table.consume(2, at: 0) == nil)
        #expect(table.count == 2)
        #expect(table.consume(1, at: 0) == 1_000)
        #expect(table.consume(3, at: 0) == nil)
        #expect(table.count == 2)
        #expect(table.consume(2, at: 0) == 1_000)
        #expect(table.consume(1, at: 0) == nil, "it was evicted and starts full")
        // The minimum capacity is one bucket.
        var one = BucketTable<Int>(RateLimit(callsPerSecond: 1, burst: 1), capacity: 0)
        #expect(one.consume(1, at: 0) == nil)
        #expect(one.consume(1, at: 0) == 1_000)
        #expect(one.consume(2, at: 0) == nil)
        #expect(one.count == 1)
    }

    @Test("the first thousand buckets are never evicted; beyond that two are inspected with each call")
    func retainedBuckets() {
        var table = BucketTable<Int>(RateLimit(callsPerSecond: 1, burst: 1), capacity: 10_000)
        for party in 0..<1_001 { #expect(table.consume(party, at: 0) == nil) }
        #expect(table.inspectionCount == 0)
        #expect(table.consume(5_000, at: 60 * Self.second) == nil)
        #expect(table.inspectionCount == 2)
        #expect(table.count == 1_000)
        for party in 6_000..<6_100 { #expect(table.consume(party, at: 60 * Self.second) == nil) }
        #expect(table.count <= 1_002)
        #expect(table.consume(6_000, at: 60 * Self.second) == 1_000, "buckets that are not full stay")
    }

    // MARK: Waits and log lines

    @Test(
        "the wait before an attempt doubles with each failure, up to the limit",
        arguments: [
            (0, 1.0, Duration.zero), (1, 1, .milliseconds(200)), (2, 1, .milliseconds(400)),
            (3, 0.5, .milliseconds(400)),
            (6, 1, .milliseconds(6_400)), (7, 1, .seconds(10)), (1_000, 1, .seconds(10)), (5, 0, .zero),
        ] as [(Int, Double, Duration)])
    func reconnecting(failures: Int, random: Double, wait: Duration) {
        #expect(ReconnectPolicy().delay(afterFailures: failures, random: random) == wait)
        #expect(ReconnectPolicy.never.maximumAttempts == 0)
    }

    @Test("rejections are logged once a second, with the number of omitted ones")
    func refusals() {
        let lines = Mutex<[String]>([])
        let log = RejectionLog { line in lines.withLock { $0.append(line) } }
        log.logLine("a", at: 5)
        log.logLine("b", at: 6)
        log.logLine("c", at: 1_000_000_004)
        log.logLine("d", at: 1_000_000_005)
        log.logLine("e", at: 2_000_000_004)
        log.logLine("f", at: 2_000_000_005)
        log.logLine("g", at: 3_000_000_005)
        #expect(lines.withLock { $0 } == ["a", "d (and 2 before it)", "f (and 1 before it)", "g"])
        log.logRejection(HTTPResponse(status: 403, text: "first line\nsecond"), from: nil, at: 9_000_000_000)
        #expect(lines.withLock { $0.last } == "refused a client with 403: first line")
    }
}
