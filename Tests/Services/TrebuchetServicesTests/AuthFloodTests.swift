import Relays
import Synchronization
import TestSupport
import Testing
import Transports
import Trebuchet

@testable import TrebuchetServices

/// Floods from many hosts of one network or of many: they do not weaken the limits of an address, and other clients can sign in.
@Suite(.timeLimit(.minutes(5))) struct AuthFloodTests {
    private static let owner = "203.0.113.5"

    private func connection(_ host: String) -> CallerConnection {
        let isIPv6 = host.contains(":")
        return CallerConnection(principal: nil, remoteAddress: SocketAddress(host: host, port: 1, isIPv6: isIPv6))
    }

    /// A host of the network 2001:db8:1::/48.
    private func host(_ number: Int) -> String { "2001:db8:1:\(String(number, radix: 16))::1" }

    private func accounts(
        _ limits: AuthLimits = AuthLimits(), _ time: VirtualTime = VirtualTime(),
        mailer: any MagicCodeMailer = ClosureMailer { _, _ in }
    ) async throws -> Accounts {
        try await Accounts(store: MemoryStore(), mailer: mailer, limits: limits, now: { time.now })
    }

    /// Returns true when the operation succeeds, false when it is refused.
    private func succeeds(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            return true
        } catch {
            return false
        }
    }

    @Test("hosts of many networks together get no more codes of an address, however many other addresses they request")
    func manyNetworks() async throws {
        var limits = AuthLimits()
        limits.rateEntries = 64
        let accounts = try await accounts(limits)
        var (sent, requests) = (0, 0)
        for network in 0..<200 {
            let prefix = "2001:db8:\(String(network + 1, radix: 16))"
            if await succeeds({ _ = try await accounts.sendMagicCode(to: "ada@b.c", for: connection(prefix + "::1")) })
            {
                sent += 1
            }
            // The host that requested the code requests more than any other.
            for number in 0..<40 {
                requests += 1
                _ = await succeeds {
                    _ = try await accounts.sendMagicCode(
                        to: "eve\(network).\(number)@b.c", for: connection(prefix + "::1"))
                }
            }
        }
        #expect(sent >= 50)
        #expect(sent <= 50 + requests / limits.rateEntries, "\(sent) codes after \(requests) requests")
    }

    @Test("the hosts of an IPv6 /48 network together have four times the rates of one host")
    func network() async throws {
        let accounts = try await accounts()
        var (codes, guests) = (0, 0)
        for number in 0..<300 {
            if await succeeds({
                _ = try await accounts.sendMagicCode(to: "eve\(number)@b.c", for: connection(host(number)))
            }) {
                codes += 1
            }
            if await succeeds({ _ = try await accounts.signInAsGuest(on: connection(host(1_000 + number))) }) {
                guests += 1
            }
        }
        #expect(codes + guests == 200)
        _ = try await accounts.sendMagicCode(to: "ada@b.c", for: connection(Self.owner))
        _ = try await accounts.signInAsGuest(on: connection("2001:db8:2::1"))
    }

    @Test("one network cannot use up the codes of an address")
    func addressOfOthers() async throws {
        let accounts = try await accounts()
        for number in 0..<60 {
            _ = await succeeds { _ = try await accounts.sendMagicCode(to: "ada@b.c", for: connection(host(number))) }
        }
        _ = try await accounts.sendMagicCode(to: "ada@b.c", for: connection(Self.owner))
    }

    @Test("a network with many hosts evicts its own pending codes, not those of others")
    func pendingCodes() async throws {
        var limits = AuthLimits()
        limits.pendingCodes = 16
        let sent = Journal()
        let accounts = try await accounts(limits, mailer: ClosureMailer { code, _ in sent.record(code) })
        let owner = connection(Self.owner)
        _ = try await accounts.sendMagicCode(to: "ada@b.c", for: owner)
        let code = try #require(sent.entries.first)
        for number in 0..<64 {
            _ = await succeeds {
                _ = try await accounts.sendMagicCode(to: "eve\(number)@b.c", for: connection(host(number)))
            }
        }
        #expect(try await accounts.verifyMagicCode(email: "ada@b.c", code: code, on: owner).user.email == "ada@b.c")
    }

    @Test("the codes of many networks do not take the place of a pending one, and are refused until one expires")
    func codesOfManyNetworks() async throws {
        let time = VirtualTime()
        let sent = Journal()
        let accounts = try await accounts(AuthLimits(), time, mailer: ClosureMailer { code, _ in sent.record(code) })
        let owner = connection(Self.owner)
        _ = try await accounts.sendMagicCode(to: "ada@b.c", for: owner)
        let code = try #require(sent.entries.first)
        var refused = 0
        for number in 0..<10_900 {
            let network = "2001:\(String(number / 0xFFF + 1, radix: 16)):\(String(number % 0xFFF + 1, radix: 16))::1"
            do throws(AuthError) {
                _ = try await accounts.sendMagicCode(to: "eve\(number)@b.c", for: connection(network))
            } catch {
                if case .rateLimited = error { refused += 1 }
            }
        }
        #expect(refused == 901, "10,000 codes may be pending")
        // A refused request takes nothing from the rates of its address.
        let late = connection("192.0.2.77")
        for _ in 0..<20 {
            #expect(await succeeds { _ = try await accounts.sendMagicCode(to: "bob@b.c", for: late) } == false)
        }
        #expect(try await accounts.verifyMagicCode(email: "ada@b.c", code: code, on: owner).user.email == "ada@b.c")
        time.advance(by: .seconds(600))
        for _ in 0..<5 { _ = try await accounts.sendMagicCode(to: "bob@b.c", for: late) }
    }

    @Test("a sign-in waits for one call of a host with many, and not for all of them")
    func turns() async throws {
        let part = StateRelay<PartState>(.working)
        var limits = AuthLimits()
        limits.attemptsPerHost = RateLimit(callsPerSecond: 1_000, burst: 1_000)
        let accounts = try await Accounts(
            store: TestStore(memory: MemoryStore(), part: part), mailer: ClosureMailer { _, _ in }, limits: limits,
            now: { 1_800_000_000_000 })
        part.update(.paused)
        let owner = connection(Self.owner)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<400 {
                group.addTask {
                    _ = try await accounts.signInAsGuest(on: connection(host(1)))
                    return false
                }
            }
            #expect(await eventually { await accounts.waitingCallCount == 400 - Accounts.maximumCallsInProgress })
            group.addTask {
                _ = try await accounts.signInAsGuest(on: owner)
                return true
            }
            #expect(await eventually { await accounts.waitingCallCount == 401 - Accounts.maximumCallsInProgress })
            part.update(.working)
            var before = 0
            for try await isOwner in group {
                if isOwner { break }
                before += 1
            }
            #expect(before < 200, "\(before) calls of the flood were first")
            try await group.waitForAll()
        }
    }

    @Test("a call for which the queue has no place is refused with the name of the limit")
    func fullQueue() async throws {
        let part = StateRelay<PartState>(.working)
        var limits = AuthLimits()
        limits.queuedRequests = 1
        let accounts = try await Accounts(
            store: TestStore(memory: MemoryStore(), part: part), mailer: ClosureMailer { _, _ in }, limits: limits,
            now: { 1_800_000_000_000 })
        part.update(.paused)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0...Accounts.maximumCallsInProgress {
                group.addTask { _ = try await accounts.signInAsGuest(on: connection(host(1))) }
            }
            #expect(await eventually { await accounts.waitingCallCount == 1 })
            await #expect(throws: AuthError.limitReached("queuedRequests")) {
                try await accounts.signInAsGuest(on: connection(host(1)))
            }
            part.update(.working)
            try await group.waitForAll()
        }
    }

    @Test("guests that sign in at once do not exceed the limit together, and those of one connection have one session")
    func atOnce() async throws {
        let time = VirtualTime()
        var limits = AuthLimits()
        limits.attemptsPerHost = RateLimit(callsPerSecond: 1_000, burst: 1_000)
        limits.guests = 20
        let accounts = try await accounts(limits, time)
        let owner = connection(Self.owner)
        let grants = try await withThrowingTaskGroup(of: SessionGrant?.self) { group in
            for number in 0..<40 {
                group.addTask { try? await accounts.signInAsGuest(on: connection(host(number))) }
                group.addTask { try? await accounts.signInAsGuest(on: owner) }
            }
            return try await group.reduce(into: [SessionGrant]()) { grants, grant in
                if let grant { grants.append(grant) }
            }
        }
        let ids = Set(grants.map(\.user.id))
        #expect(ids.count == 20)
        let ofOwner = try await accounts.sessions(of: owner)
        #expect(ofOwner.count == 1)
    }

    @Test("a network creates a limited number of guests, also over weeks")
    func guestsOfNetwork() async throws {
        let time = VirtualTime()
        var limits = AuthLimits()
        limits.attemptsPerHost = RateLimit(callsPerSecond: 1_000, burst: 1_000_000)
        let accounts = try await accounts(limits, time)
        var guests = 0
        for number in 0..<6_000 {
            if await succeeds({ _ = try await accounts.signInAsGuest(on: connection(host(number))) }) { guests += 1 }
        }
        #expect(guests == 4_000)
        _ = try await accounts.signInAsGuest(on: connection(Self.owner))
    }

    @Test("when guests are many, those that were not active for longer than they had been used give way to new ones")
    func idleGuests() async throws {
        let time = VirtualTime()
        var limits = AuthLimits()
        limits.guests = 8
        let accounts = try await accounts(limits, time)
        let active = try await accounts.signInAsGuest(on: connection(Self.owner))
        time.advance(by: .seconds(3 * 24 * 60 * 60))
        let renewed = try await accounts.refresh(active.refreshToken, on: connection(Self.owner))
        for number in 0..<7 { _ = try await accounts.signInAsGuest(on: connection(host(number))) }
        await #expect(throws: AuthError.limitReached("guests")) {
            try await accounts.signInAsGuest(on: connection(Self.owner))
        }
        time.advance(by: .seconds(25 * 60 * 60))
        _ = try await accounts.signInAsGuest(on: connection(Self.owner))
        #expect(
            try await accounts.refresh(renewed.refreshToken, on: connection(Self.owner)).user.id == active.user.id,
            "was active for three days")
    }

    /// Sends each mail when a test lets it.
    private final class BlockingMailer: MagicCodeMailer {
        let sent = Journal()
        private let state = StateRelay<(begun: [String], released: Set<String>)>(([], []))

        func send(_ code: String, to address: String) async throws {
            state.update { $0.begun.append(address) }
            for await state in state.stream where state.released.contains(address) { break }
            sent.record(address)
        }

        func send(_ notice: AccountNotice, to address: String) async throws {}

        func release(_ address: String) { state.update { _ = $0.released.insert(address) } }
        func waitForBegun(_ address: String) async {
            for await state in state.stream where state.begun.contains(address) { return }
        }
    }

    @Test("while hosts of one network wait for their mails, the mail of another network is the next")
    func mailQueue() async throws {
        var limits = AuthLimits()
        limits.mailsInFlight = 2
        let mailer = BlockingMailer()
        let accounts = try await accounts(limits, mailer: mailer)
        try await withThrowingTaskGroup(of: Void.self) { group in
            func send(_ address: String, _ host: String) {
                group.addTask { _ = try await accounts.sendMagicCode(to: address, for: self.connection(host)) }
            }
            for number in 0..<2 {
                send("eve\(number)@b.c", host(number))
                await mailer.waitForBegun("eve\(number)@b.c")
            }
            for number in 2..<6 {
                send("eve\(number)@b.c", host(number))
                #expect(await eventually { await accounts.waitingMailCount == number - 1 })
            }
            send("ada@b.c", Self.owner)
            #expect(await eventually { await accounts.waitingMailCount == 5 })
            mailer.release("eve0@b.c")
            await mailer.waitForBegun("ada@b.c")
            for number in 1..<6 { mailer.release("eve\(number)@b.c") }
            mailer.release("ada@b.c")
            try await group.waitForAll()
        }
        #expect(Set(mailer.sent.entries).count == 7)
    }
}
