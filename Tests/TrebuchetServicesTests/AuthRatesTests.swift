import TestSupport
import Testing
import Transports
import Trebuchet

@testable import TrebuchetServices

@Suite struct AuthRatesTests {
    @Test("a rate table limits each key separately, and rates recover with time")
    func rates() {
        var table = RateTable<Int, String>(RateLimit(callsPerSecond: 1, burst: 2), capacity: 10)
        for _ in 0..<2 {
            #expect(table.wait(for: "a", at: 0) == nil)
            table.consume("a", of: 1, at: 0)
        }
        #expect(table.wait(for: "a", at: 0) == 1000)
        #expect(table.wait(for: "a", at: 0) == 1000, "a check consumes nothing")
        #expect(table.wait(for: "b", at: 0) == nil)
        #expect(table.wait(for: "a", at: 400) == 600)
        #expect(table.wait(for: "a", at: 1000) == nil)
        table.remove("a")
        #expect(table.wait(for: "a", at: 0) == nil)
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
        try await accounts.consumeAttempt(connection)
        wall.advance(by: .seconds(-3_600))
        await #expect(throws: AuthError.rateLimited(retryAfterMilliseconds: 1_000)) {
            try await accounts.consumeAttempt(connection)
        }
        uptime.advance(by: .seconds(1))
        let code = try #require(sent.entries.first)
        wall.advance(by: .seconds(7_200))
        // With a space in the middle, as users copy it.
        let typed = code.prefix(3) + " " + code.suffix(3)
        let grant = try await accounts.verifyMagicCode(email: "ada@b.c", code: String(typed), on: connection)
        #expect(grant.user.email == "ada@b.c")
    }

    @Test("a full table evicts recovered keys first, then the oldest key of the owner with the most")
    func eviction() {
        var table = RateTable<Int, String>(RateLimit(callsPerSecond: 1, burst: 1), capacity: 3)
        table.consume("a", of: 1, at: 0)
        table.consume("b", of: 2, at: 900)
        table.consume("c", of: 2, at: 900)
        // By this time "a" has recovered.
        table.consume("d", of: 3, at: 1000)
        #expect(["b", "c", "d"].map { table.wait(for: $0, at: 1000) } == [900, 900, 1000])
        table.consume("e", of: 3, at: 1000)
        #expect(["b", "c", "d", "e"].map { table.wait(for: $0, at: 1000) } == [nil, 900, 1000, 1000])
    }

    @Test("a fair table keeps the entries of other owners, whoever fills it", arguments: [1, 16, 100, 1_000])
    func fairness(capacity: Int) {
        var table = FairEvictionTable<Int, Int, Int>(capacity: capacity)
        // One entry for each of a few owners, then a flood of one owner.
        let few = min(5, capacity / 2)
        for owner in 0..<few { table.insert(owner, for: owner, of: owner) }
        var gone: Set<Int> = []
        for number in 0..<(3 * capacity) {
            for (key, _) in table.insert(number, for: 1_000_000 + number, of: -1) { gone.insert(key) }
            #expect(table.count <= capacity)
        }
        for owner in 0..<few { #expect(table[owner] == owner) }
        #expect(table[1_000_000 + 3 * capacity - 1] != nil)
        #expect(gone.count + table.count == few + 3 * capacity, "each evicted entry was reported")
        #expect(gone.allSatisfy { table[$0] == nil })
    }

    @Test("a flood of owners evicts its own oldest entries")
    func manyOwners() {
        var table = FairEvictionTable<Int, Int, Int>(capacity: 32)
        for number in 0..<100 { table.insert(number, for: number, of: number) }
        #expect(table.count <= 32 && table[99] == 99 && table[0] == nil)
        table.removeAll { $0 % 2 == 0 }
        #expect(table[99] == 99 && table[98] == nil)
        #expect(table.remove(99) == 99 && table.remove(99) == nil)
    }

    @Test("a request refused by one rate consumes nothing of the others")
    func allOrNothing() throws {
        var limits = AuthLimits()
        limits.codesPerAddress = RateLimit(callsPerSecond: 0.001, burst: 1)
        limits.codesPerConnection = RateLimit(callsPerSecond: 0.001, burst: 2)
        limits.attemptsPerHost = RateLimit(callsPerSecond: 0.001, burst: 2)
        var rates = AuthRates<Int>(limits)
        let asker = AuthRates<Int>.Requester(host: 1, connection: 1)
        try rates.consumeCode(for: "a", asker, at: 0)
        for _ in 0..<5 { #expect(throws: AuthError.self) { try rates.consumeCode(for: "a", asker, at: 0) } }
        try rates.consumeCode(for: "b", asker, at: 0)
        #expect(throws: AuthError.self) { try rates.consumeAttempt(asker, at: 0) }
    }

    @Test("a single host never uses up an address's codes, and using a code restores its host's rate")
    func addresses() throws {
        var rates = AuthRates<Int>(AuthLimits())
        var sent = 0
        for minute in stride(from: 0, to: Int64(60 * 24 * 30), by: 5) {
            let asker = AuthRates<Int>.Requester(host: 1, connection: UInt64(minute))
            if (try? rates.consumeCode(for: "a", asker, at: minute * 60_000)) != nil { sent += 1 }
        }
        #expect((700...740).contains(sent), "one an hour, \(sent)")
        let now = Int64(60 * 24 * 30) * 60_000
        let owner = AuthRates<Int>.Requester(host: 2, connection: .max)
        for _ in 0..<5 { try rates.consumeCode(for: "a", owner, at: now) }
        #expect(throws: AuthError.self) { try rates.consumeCode(for: "a", owner, at: now) }
        rates.usedCode(for: "a", owner)
        try rates.consumeCode(for: "a", AuthRates<Int>.Requester(host: 2, connection: 7), at: now)
        // Many hosts together reach the limit all the same.
        var all = 0
        for host in 3..<100 {
            let asker = AuthRates<Int>.Requester(host: host, connection: UInt64(host) << 32)
            if (try? rates.consumeCode(for: "a", asker, at: now)) != nil { all += 1 }
        }
        #expect(all < 50)
    }
}
