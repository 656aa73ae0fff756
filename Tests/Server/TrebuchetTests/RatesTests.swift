import Bytes
import Networking
import Platform
import Synchronization
import Testing
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Rates and quotas; times are in nanoseconds.
@Suite("Rates and quotas at their limits") struct RatesTests {
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
        limits.callsPerMethod = ["slow()": RateLimit(callsPerSecond: 1, burst: 1)]
        limits.callsPerConnectionRate = RateLimit(callsPerSecond: 1, burst: 2)
        let principals = ShardedBuckets<PrincipalName>(RateLimit(callsPerSecond: 1, burst: 3))
        let ada = Principal(id: "ada")
        func take(_ target: String, _ buckets: ConnectionBuckets, _ principal: Principal?) -> String? {
            buckets.consume(target, limits, principals, principal, at: Self.second).map {
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
        for _ in 0..<100 { #expect(free.consume("slow()", ServerLimits(), nil, ada, at: Self.second) == nil) }
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

    /// A quota as a reference type.
    private final class Quotas {
        private let quota: Quota
        init(_ limit: Int, within memory: MemoryBudget? = nil) { quota = Quota(limit, within: memory) }
        func reserve(_ amount: Int = 1) -> Bool { quota.reserve(amount) }
        func release(_ amount: Int = 1) { quota.release(amount) }
        var count: Int { quota.count }
    }

    @Test("a quota reserves all or nothing, and is available again after release")
    func quota() {
        let memory = MemoryBudget(limit: 100)
        let quota = Quotas(10, within: memory)
        #expect(quota.reserve(10))
        #expect(quota.count == 10 && memory.usedBytes == 10)
        #expect(!quota.reserve())
        #expect(quota.count == 10 && memory.usedBytes == 10)
        quota.release(4)
        #expect(quota.reserve(4))
        #expect(!quota.reserve(1))
        quota.release(10)
        #expect(quota.count == 0 && memory.usedBytes == 0)
        memory.adjustUsage(by: 95)
        #expect(!quota.reserve(6))
        #expect(quota.count == 0 && memory.usedBytes == 95)
        #expect(quota.reserve(5))
        #expect(memory.isExhausted)
        let alone = Quotas(1)
        #expect(alone.reserve())
        #expect(!alone.reserve())
        alone.release()
        #expect(alone.reserve())
    }

    @Test("a party has one shared quota while it is referenced, and none afterwards")
    func shares() {
        let shares = QuotaTable<String>(limit: 2)
        func take(_ share: ScopedQuota<String>?) -> Bool { share?.quota.reserve() == true }
        var one: ScopedQuota<String>? = shares.share(of: "a")
        let same: ScopedQuota<String>? = shares.share(of: "a")
        #expect(one === same && shares.count == 1)
        let taken = [take(one), take(same), take(one)]
        #expect(taken == [true, true, false])
        let other = shares.share(of: "b")
        let isFree = take(other)
        #expect(isFree && shares.count == 2)
        one = nil
        #expect(shares.count == 2)
        withExtendedLifetime((same, other)) {}
        do {
            let third = shares.share(of: "c")
            let isFree = take(third)
            #expect(isFree && shares.count == 3)
        }
        #expect(shares.count == 2)
    }

    @Test("each party may use its quota, and all together the server's limit")
    func book() throws {
        var limits = ServerLimits()
        limits.connections = 3
        limits.connectionsPerPrincipal = 2
        let book = QuotaLedger(limits: limits)
        func scopes(_ connection: UInt64, _ principal: String?) -> QuotaScopes {
            QuotaScopes(connection: connection, principal: principal, host: nil)
        }
        let first = try book.reserve(.connections, for: scopes(1, "ada"))
        var second: QuotaReservation? = try book.reserve(.connections, for: scopes(2, "ada"))
        #expect(book.count(.connections) == 2)
        let refusal = #expect(throws: TrebuchetError.self) { try book.reserve(.connections, for: scopes(3, "ada")) }
        #expect(refusal?.code == .rateLimited)
        #expect(
            refusal?.message
                == "quota exceeded: 'ada' has 2 connections (ServerLimits.connectionsPerPrincipal); retry when some have ended"
        )
        #expect(book.count(.connections) == 2, "a rejected reservation uses nothing")
        let third = try book.reserve(.connections, for: scopes(3, "bob"))
        let full = #expect(throws: TrebuchetError.self) { try book.reserve(.connections, for: scopes(4, nil)) }
        #expect(
            full?.message.hasPrefix("quota exceeded: the server has 3 connections (ServerLimits.connections)") == true)
        first.release()
        first.release()
        #expect(book.count(.connections) == 2)
        second = nil
        #expect(second == nil && book.count(.connections) == 1)
        third.release()
        #expect(book.count(.connections) == 0)
        // No reservation counts for any party afterwards.
        for number in 1...2 { _ = try book.reserve(.connections, for: scopes(UInt64(number), "ada")) }
    }

    @Test("quota scopes are ordered from the narrowest to the server")
    func scopes() throws {
        let host = try #require(SocketAddress(literal: "192.0.2.7", port: 0).flatMap { AddressKey($0) })
        let all = QuotaScopes(connection: 7, principal: "ada", host: host)
        #expect(all.all == [.connection(7), .principal(PrincipalName("ada")), .host(host.number)])
        #expect(all.beyondConnection == [.principal(PrincipalName("ada")), .host(host.number), .server])
        let ipv6 = try #require(SocketAddress(literal: "2001:db8:1:2::3", port: 0).flatMap { AddressKey($0) })
        #expect(
            QuotaScopes(connection: nil, principal: nil, host: ipv6).all
                == [.host(ipv6.number), .network(ipv6.network.number)])
        let limits = ServerLimits()
        for resource in SharedResource.allCases {
            let (host, network) = (limits.share(of: resource, .host(1)), limits.share(of: resource, .network(1)))
            #expect(network.limit == 4 * host.limit && network.setting == host.setting)
        }
        #expect(QuotaScopes(connection: 7, principal: nil, host: nil).all == [.connection(7)])
        #expect(QuotaScopes(connection: 7, principal: nil, host: nil).beyondConnection == [.server])
        #expect(Set(SharedResource.allCases.map(\.name)).count == SharedResource.allCases.count)
    }

    @Test("a principal's memory counts while one of its connections is open")
    func principalMemory() {
        let memory = PrincipalMemory(limit: 100)
        var first: PrincipalMemory.ConnectionUsage? = memory.usage(of: "ada")
        var second: PrincipalMemory.ConnectionUsage? = memory.usage(of: "ada")
        first?.budget.adjustUsage(by: 60)
        #expect(second?.budget.usedBytes == 60 && second?.budget.limit == 100)
        #expect(memory.usage(of: "bob").budget.usedBytes == 0)
        first = nil
        #expect(first == nil && memory.usage(of: "ada").budget.usedBytes == 60)
        second = nil
        #expect(second == nil && memory.usage(of: "ada").budget.usedBytes == 0)
    }

    @Test(
        "recorded responses count for principal, host and server; a rejected reservation counts nowhere",
        arguments: [
            ("recordedResponsesPerPrincipal", "of this principal"), ("recordedResponsesPerHost", "of this host"),
            ("recordedResponses", "of all"),
            ("recordedResponseBytesPerPrincipal", "of this principal"),
            ("recordedResponseBytesPerHost", "of this host"),
            ("recordedResponseBytes", "of all"),
        ])
    func holding(setting: String, whose: String) throws {
        var limits = ServerLimits()
        limits.recordedResponsesPerPrincipal = setting == "recordedResponsesPerPrincipal" ? 2 : 9
        limits.recordedResponsesPerHost = setting == "recordedResponsesPerHost" ? 2 : 9
        limits.recordedResponses = setting == "recordedResponses" ? 2 : 9
        limits.recordedResponseBytesPerPrincipal = setting == "recordedResponseBytesPerPrincipal" ? 20 : 90
        limits.recordedResponseBytesPerHost = setting == "recordedResponseBytesPerHost" ? 20 : 90
        limits.recordedResponseBytes = setting == "recordedResponseBytes" ? 20 : 90
        let shares = IdempotencyQuotas(limits)
        let host = try #require(SocketAddress(literal: "192.0.2.7", port: 0).flatMap { AddressKey($0) })
        let holding = IdempotencyReservation(shares, principal: "ada", host: host)
        #expect([shares.scopeCount.principals, shares.scopeCount.hosts] == [1, 1])
        let areBytes = setting.contains("Bytes")
        for round in 1...3 {
            #expect(holding.reserve(bytes: 10) == nil && holding.reserve(bytes: 10) == nil)
            let full = try #require(holding.reserve(bytes: areBytes ? 1 : 0))
            #expect(full.whose == whose)
            #expect(full.setting == "\(setting): \(areBytes ? 20 : 2)")
            let (answers, bytes) = (shares.recordedResponses.count, shares.bytes.count)
            #expect(answers == 2 && bytes == 20, "round \(round)")
            if areBytes {
                #expect(holding.reserveBytes(1)?.setting == full.setting)
                #expect(holding.reserveBytes(0) == nil)
            }
            holding.release(bytes: 10)
            holding.release(bytes: 10)
            let (answersLeft, bytesLeft) = (shares.recordedResponses.count, shares.bytes.count)
            #expect(answersLeft == 0 && bytesLeft == 0)
        }
        // An unknown principal or host has no quota.
        let unknown = IdempotencyReservation(shares, principal: nil, host: nil)
        #expect(unknown.reserve(bytes: 1) == nil)
        unknown.release(bytes: 1)
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
