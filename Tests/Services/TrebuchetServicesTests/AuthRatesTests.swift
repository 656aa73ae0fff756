import TestSupport
import Testing
import Transports
import Trebuchet

@testable import TrebuchetServices

@Suite struct AuthRatesTests {
    @Test("a rate table limits each key separately, and rates recover with time")
    func rates() {
        var table = BucketTable<String>(RateLimit(callsPerSecond: 1, burst: 2), capacity: 10, inheritsConsumption: true)
        for _ in 0..<2 {
            #expect(table.wait(for: "a", atMilliseconds: 0) == nil)
            table.take("a", atMilliseconds: 0)
        }
        #expect(table.wait(for: "a", atMilliseconds: 0) == 1000)
        #expect(table.wait(for: "a", atMilliseconds: 0) == 1000, "a check consumes nothing")
        #expect(table.wait(for: "b", atMilliseconds: 0) == nil)
        #expect(table.wait(for: "a", atMilliseconds: 400) == 600)
        #expect(table.wait(for: "a", atMilliseconds: 1000) == nil)
        table.remove("a")
        #expect(table.wait(for: "a", atMilliseconds: 0) == nil)
    }

    @Test(
        "a code is compared by its digits, however it was pasted",
        arguments: [
            ("012345", "012345"), ("012 345", "012345"), (" 012-345\n", "012345"), ("012\u{A0}345", "012345"),
            ("012\u{2013}345", "012345"), ("012\u{2212}345", "012345"), ("\u{200B}012345\u{FEFF}", "012345"),
            ("０１２３４５", "012345"), ("٠١٢٣٤٥", "012345"), ("01234", "01234"), ("12a345", "12a345"), ("", ""),
            ("①23456", "①23456"), (String(repeating: "1 ", count: 40), String(repeating: "1 ", count: 40)),
        ])
    func typed(text: String, code: String) { #expect(TypedCode.normalized(text) == code) }

    @Test("setting the clock back an hour neither delays the recovery of rates, nor lengthens waits, nor expires codes")
    func clockSetBack() async throws {
        let (wall, uptime) = (VirtualTime(), VirtualTime())
        var limits = AuthLimits()
        limits.attemptsPerHost = RateLimit(callsPerSecond: 1, burst: 2)
        let sent = Journal()
        let accounts = try await Accounts(
            store: MemoryStore(), mailer: ClosureMailer { code, _ in sent.record(code) }, limits: limits,
            now: { wall.now }, uptime: { uptime.now })
        let connection = CallerConnection(
            principal: nil, remoteAddress: SocketAddress(host: "192.0.2.1", port: 1, isIPv6: false))
        _ = try await accounts.sendMagicCode(to: "ada@b.c", for: connection)
        try await accounts.consumeRate(.attempt, connection)
        wall.advance(by: .seconds(-3_600))
        await #expect(throws: AuthError.rateLimited(retryAfterMilliseconds: 1_000)) {
            try await accounts.consumeRate(.attempt, connection)
        }
        uptime.advance(by: .seconds(1))
        let code = try #require(sent.entries.first)
        wall.advance(by: .seconds(7_200))
        // With a space in the middle, as users copy it.
        let typed = code.prefix(3) + " " + code.suffix(3)
        let grant = try await accounts.verifyMagicCode(email: "ada@b.c", code: String(typed), on: connection)
        #expect(grant.user.email == "ada@b.c")
    }

    @Test(
        "a full table evicts restored keys first, then those that are restored soonest, and new keys start with their use"
    )
    func eviction() {
        var table = BucketTable<String>(RateLimit(callsPerSecond: 1, burst: 2), capacity: 3, inheritsConsumption: true)
        table.take("a", atMilliseconds: 0)
        table.take("b", atMilliseconds: 500)
        table.take("b", atMilliseconds: 500)
        table.take("c", atMilliseconds: 900)
        // By then "a" is restored.
        table.take("d", atMilliseconds: 1000)
        #expect(
            ["b", "c", "d"].map { table.wait(for: $0, atMilliseconds: 1000) } == [500, nil, nil] && table.count == 3)
        // Evicts "c", which is restored at 1900.
        table.take("e", atMilliseconds: 1000)
        #expect(
            ["b", "d", "e"].map { table.wait(for: $0, atMilliseconds: 1000) } == [500, nil, 900] && table.count == 3)
        // Evicts "d", of which one unit was taken; one is left in any case.
        table.take("f", atMilliseconds: 1000)
        #expect(
            ["b", "e", "f"].map { table.wait(for: $0, atMilliseconds: 1000) } == [500, 900, 1000] && table.count == 3)
    }

    @Test("a key that is evicted by a flood of others gets one more for as many others as the table has keys")
    func flood() {
        var table = BucketTable<Int>(
            RateLimit(callsPerSecond: 0.001, burst: 5), capacity: 100, inheritsConsumption: true)
        var (taken, others) = (0, 0)
        for round in 0..<10_000 {
            let now = Int64(round)
            if table.wait(for: -1, atMilliseconds: now) == nil {
                table.take(-1, atMilliseconds: now)
                taken += 1
            }
            for number in 0..<3 where table.wait(for: 3 * round + number, atMilliseconds: now) == nil {
                table.take(3 * round + number, atMilliseconds: now)
                others += 1
            }
            #expect(table.count <= 100)
        }
        #expect(others == 30_000 && taken >= 5 && taken <= 5 + others / 90, "\(taken)")
    }

    @Test("a host and its network have separate rates, and a network those of four hosts")
    func networks() {
        var table = HostRateTable<Int>(RateLimit(callsPerSecond: 0.001, burst: 2), capacity: 100)
        var taken: [Int: Int] = [:]
        // Hosts of network 1, and one without a network.
        for host in [1_001, 1_002, 1_003, 1_004, 1_005, 7] {
            for _ in 0..<3 where table.wait(for: host, at: 0) == nil {
                table.consume(host, at: 0)
                taken[host, default: 0] += 1
            }
        }
        #expect(taken == [1_001: 2, 1_002: 2, 1_003: 2, 1_004: 2, 7: 2])
        #expect(table.wait(for: 1_005, "a", at: 0) == nil)
        table.remove(1_005, "")
        #expect(table.wait(for: 1_005, at: 0) == nil && table.wait(for: 1_001, at: 0) != nil)
    }

    @Test("a fair table keeps the entries of other owners, whoever fills it", arguments: [1, 16, 100, 1_000])
    func fairness(capacity: Int) {
        var table = FairTable<Int, Int, Int>(capacity: capacity)
        // One entry for each of a few owners, then a flood of one owner.
        let few = min(5, capacity / 2)
        for owner in 0..<few { table.insert(owner, for: owner, of: owner) }
        var gone: Set<Int> = []
        for number in 0..<(3 * capacity) {
            if let (key, _) = table.insert(number, for: 1_000_000 + number, of: 999).evicted { gone.insert(key) }
            #expect(table.count <= capacity)
        }
        for owner in 0..<few { #expect(table[owner] == owner) }
        #expect(table[1_000_000 + 3 * capacity - 1] != nil)
        #expect(gone.count + table.count == few + 3 * capacity, "each evicted entry was reported")
        #expect(gone.allSatisfy { table[$0] == nil })
        #expect(table.oldest?.value == (few > 0 ? 0 : 2))
    }

    @Test("a network with many hosts evicts its own entries, each host keeping its newest")
    func hostsOfNetwork() {
        var table = FairTable<Int, Int, Int>(capacity: 15)
        for owner in 1...5 { table.insert(owner, for: owner, of: owner) }
        for round in 0..<3 {
            for host in 1_000..<1_008 { table.insert(host, for: host * 10 + round, of: host) }
        }
        for owner in 1...5 { #expect(table[owner] == owner) }
        #expect(table.count == 15)
        for host in 1_000..<1_008 { #expect(table[host * 10 + 2] == host) }
        // Another network gets the place of one of them.
        #expect(table.insert(6, for: 6, of: 6).evicted != nil)
        #expect(table.count == 15 && (1_000..<1_008).count { table[$0 * 10 + 2] != nil } == 8)
    }

    @Test("a flood of owners takes no place of the entries that are there, and is refused")
    func manyOwners() {
        var table = FairTable<Int, Int, Int>(capacity: 32)
        for number in 0..<100 {
            #expect(table.hasRoom(for: number, of: number) == (number < 32))
            #expect(table.insert(number, for: number, of: number).isInserted == (number < 32))
        }
        #expect(table.count == 32 && table[0] == 0 && table[31] == 31 && table[32] == nil)
        // An owner may replace its own.
        #expect(table.hasRoom(for: 1_000_000, of: 7) && table.hasRoom(for: 7, of: 7))
        let replaced = table.insert(8, for: 1_000_000, of: 7)
        #expect(replaced.isInserted && replaced.evicted?.key == 7 && table.count == 32)
        #expect(table.remove(31) == 31 && table.remove(31) == nil)
        #expect(table.insert(99, for: 99, of: 99).isInserted && table[99] == 99)
    }

    @Test("a network keeps its guaranteed entries in a large table, and loses more to networks with fewer")
    func guaranteed() {
        var table = FairTable<Int, Int, Int>(capacity: 4_096)
        for key in 0..<10 { table.insert(key, for: key, of: 1) }
        var refused = 0
        for owner in 1_000..<6_000 {
            let key = 10 + owner
            if !table.insert(key, for: key, of: owner * 1_000).isInserted { refused += 1 }
        }
        #expect((0..<10).filter { table[$0] != nil } == [6, 7, 8, 9])
        #expect(table.count == 4_096 && refused == 5_000 - 4_092)
    }

    @Test("removed entries take no memory, however often one is replaced")
    func replaced() {
        var table = FairTable<Int, Int, Int>(capacity: 4)
        for number in 0..<10_000 {
            table.insert(number, for: number % 2, of: 1)
            if number % 3 == 0 { table.remove(0) }
        }
        #expect(table.count <= 2)
        #expect(table.oldest.map { $0.value >= 9_997 } == true)
    }

    @Test("a renewed entry is the newest; the next victim is of the owner with the most entries, or the oldest of all")
    func victims() {
        var table = FairTable<Int, Int, Int>(capacity: 8)
        for key in 0..<4 { table.insert(key, for: key, of: 1_000) }
        table.insert(9, for: 9, of: 5)
        func victims(_ owners: [(Int, isOwn: Bool)]) -> [Int?] {
            owners.map { table.victim(for: $0.0, having: $0.0 == 5 ? 1 : 0, isOwn: $0.isOwn) }
        }
        #expect(victims([(5, false), (7, false)]) == [0, 0])
        let renewed = [0, 0, 10].map { table.renew($0) }
        #expect(renewed == [true, true, false])
        #expect(victims([(7, false), (5, true), (7, true)]) == [1, 9, nil])
        for key in 1..<4 { table.remove(key) }
        #expect(victims([(7, false)]) == [9], "each has one")
        let inUse = table.victim(for: 7, having: 2, isOwn: false)
        #expect(inUse == nil, "its entries are elsewhere")
        for _ in 0..<1_000 { for key in [9, 0] { _ = table.renew(key) } }
        let oldest = table.oldest?.key
        #expect(oldest == 9 && table.count == 2)
    }

    @Test("a request refused by one rate consumes nothing of the others")
    func allOrNothing() throws {
        var limits = AuthLimits()
        limits.codesPerAddressAndHost = RateLimit(callsPerSecond: 0.001, burst: 1)
        limits.codesPerConnection = RateLimit(callsPerSecond: 0.001, burst: 2)
        limits.attemptsPerHost = RateLimit(callsPerSecond: 0.001, burst: 2)
        var rates = AuthRates<Int>(limits)
        let requester = AuthRates<Int>.Requester(host: 1, connection: 1)
        try rates.consume(.code(for: "a"), requester, at: 0)
        for _ in 0..<5 { #expect(throws: AuthError.self) { try rates.consume(.code(for: "a"), requester, at: 0) } }
        try rates.consume(.code(for: "b"), requester, at: 0)
        #expect(throws: AuthError.self) { try rates.consume(.attempt, requester, at: 0) }
    }

    @Test("a single host never uses up an address's codes, and using a code restores its host's rate")
    func addresses() throws {
        var rates = AuthRates<Int>(AuthLimits())
        var sent = 0
        for minute in stride(from: 0, to: Int64(60 * 24 * 30), by: 5) {
            let requester = AuthRates<Int>.Requester(host: 1, connection: UInt64(minute))
            if (try? rates.consume(.code(for: "a"), requester, at: minute * 60_000)) != nil { sent += 1 }
        }
        #expect((700...740).contains(sent), "one an hour, \(sent)")
        let now = Int64(60 * 24 * 30) * 60_000
        let owner = AuthRates<Int>.Requester(host: 2, connection: .max)
        for _ in 0..<5 { try rates.consume(.code(for: "a"), owner, at: now) }
        #expect(throws: AuthError.self) { try rates.consume(.code(for: "a"), owner, at: now) }
        rates.usedCode(for: "a", owner)
        try rates.consume(.code(for: "a"), AuthRates<Int>.Requester(host: 2, connection: 7), at: now)
        // Many hosts together reach the limit all the same.
        var all = 0
        for host in 3..<100 {
            let requester = AuthRates<Int>.Requester(host: host, connection: UInt64(host) << 32)
            if (try? rates.consume(.code(for: "a"), requester, at: now)) != nil { all += 1 }
        }
        #expect(all < 50)
    }
}

/// A host number, in the network of its thousands.
extension Int: QuotaHost {
    var network: Int { self < 1_000 ? self : self / 1_000 * -1 }
}
