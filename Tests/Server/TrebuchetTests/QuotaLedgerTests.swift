import Bytes
import Networking
import Platform
import Testing
import WebSockets

@testable import Trebuchet
@testable import TrebuchetActors

/// The use of resources by scope.
@Suite struct QuotaLedgerTests {
    private static func address(_ text: String) throws -> AddressKey {
        try #require(SocketAddress(literal: text, port: 0).flatMap { AddressKey($0) })
    }

    /// A ledger in which one limit of a resource is small.
    private static func ledger(
        _ setting: String, _ value: Int, memory: MemoryBudget? = nil, events: EventBus = EventBus()
    ) -> QuotaLedger {
        var limits = ServerLimits()
        switch setting {
        case "connections.total": limits.connections.total = value
        case "connections.perPrincipal": limits.connections.perPrincipal = value
        case "connections.perHost": limits.connections.perHost = value
        case "activatedActors.perConnection": limits.activatedActors.perConnection = value
        case "clientCalls.perClient": limits.clientCalls.perClient = value
        case "clientCalls.bytesPerClient": limits.clientCalls.bytesPerClient = value
        case "clientCalls.total": limits.clientCalls.total = value
        case "clientCalls.perPrincipal": limits.clientCalls.perPrincipal = value
        case "clientCalls.perHost": limits.clientCalls.perHost = value
        case "memory.total":
            limits.memory.total = value
            (limits.memory.perHost, limits.memory.perPrincipal) = (2 * value, 2 * value)
        case "memory.perHost": limits.memory.perHost = value
        case "memory.perPrincipal": limits.memory.perPrincipal = value
        case "idempotency.total": limits.idempotency.total = value
        case "idempotency.perPrincipal": limits.idempotency.perPrincipal = value
        case "idempotency.perHost": limits.idempotency.perHost = value
        case "idempotency.totalBytes": limits.idempotency.totalBytes = value
        case "idempotency.bytesPerPrincipal": limits.idempotency.bytesPerPrincipal = value
        case "idempotency.bytesPerHost": limits.idempotency.bytesPerHost = value
        default: Issue.record("unknown setting \(setting)")
        }
        return QuotaLedger(limits: limits, memory: memory, events: events)
    }

    /// A setting that a use of a resource reaches, and the scope that the error names.
    struct Case: Sendable, CustomTestStringConvertible {
        let item: SharedResource
        var bytes: SharedResource?
        let setting: String
        let scope: String

        var testDescription: String { "\(item) \(setting)" }
        var areBytes: Bool { setting.lowercased().contains("bytes") }
    }

    static let cases =
        [
            ("connections.total", "the server has"), ("connections.perPrincipal", "'ada' has"),
            ("connections.perHost", "this host has"),
        ].map { Case(item: .connections, setting: $0.0, scope: $0.1) }
        + [Case(item: .actorsOnDemand, setting: "activatedActors.perConnection", scope: "this client has")]
        + [
            ("clientCalls.perClient", "this client has"), ("clientCalls.bytesPerClient", "this client has"),
            ("clientCalls.total", "the server has"), ("clientCalls.perPrincipal", "the client's principal has"),
            ("clientCalls.perHost", "this host has"), ("memory.total", "the server has"),
            ("memory.perHost", "this host has"), ("memory.perPrincipal", "the client's principal has"),
        ].map { Case(item: .clientCalls, bytes: .clientCallBytes, setting: $0.0, scope: $0.1) }
        + [
            ("idempotency.total", "the server has"), ("idempotency.perPrincipal", "'ada' has"),
            ("idempotency.perHost", "this host has"), ("idempotency.totalBytes", "the server has"),
            ("idempotency.bytesPerPrincipal", "'ada' has"), ("idempotency.bytesPerHost", "this host has"),
        ].map { Case(item: .recordedResponses, bytes: .recordedResponseBytes, setting: $0.0, scope: $0.1) }

    @Test("a use over a limit is refused with the scope and the setting, and counts nowhere", arguments: cases)
    func refused(example: Case) throws {
        let memory = MemoryBudget(limit: example.setting == "memory.total" ? 200 : 1 << 20)
        let events = EventBus()
        let ledger = Self.ledger(
            example.setting, example.areBytes || example.setting.hasPrefix("memory.") ? 200 : 2,
            memory: memory, events: events)
        let scopes = QuotaScopes(connection: 1, principal: "ada", host: try Self.address("192.0.2.1"))
        // A connection has one connection.
        let account = ledger.account(for: scopes, own: example.item == .connections ? nil : .client(7))
        let principal = ledger.row(of: .principal(PrincipalName("ada")))
        func reserve() throws -> QuotaReservation {
            try ledger.reserve(example.item, with: example.bytes.map { ($0, 100) }, in: account)
        }
        var used: [Int?] {
            [
                ledger.count(example.item), principal.count(example.item),
                example.bytes.map { ledger.count($0) }, example.bytes.map { principal.count($0) }, memory.usedBytes,
            ]
        }
        func expected(_ count: Int) -> [Int?] {
            let bytes = example.bytes == nil ? nil : 100 * count
            return [count, count, bytes, bytes, bytes ?? 0]
        }
        for round in 1...2 {
            let first = try reserve()
            var second: QuotaReservation? = try reserve()
            #expect(used == expected(2))
            let error = #expect(throws: TrebuchetError.self) { try reserve() }
            #expect(error?.code == .rateLimited)
            #expect(error?.message.hasPrefix("quota exceeded: \(example.scope) ") == true, "\(error?.message ?? "")")
            #expect(error?.message.contains("(ServerLimits.\(example.setting)); retry ") == true)
            #expect(events.rejectionCounts.limits == [example.setting: UInt64(round)])
            #expect(used == expected(2))
            first.release()
            first.release()
            #expect(used == expected(1))
            second = nil
            #expect(second == nil && used == expected(0))
        }
        #expect(ledger.isEmpty)
    }

    @Test("errors name the scope, the number and the setting")
    func texts() throws {
        let ledger = Self.ledger("connections.perPrincipal", 1)
        let account = ledger.account(for: QuotaScopes(connection: 1, principal: "ada", host: nil))
        let first = try ledger.reserve(.connections, in: account)
        let refusal = #expect(throws: TrebuchetError.self) { try ledger.reserve(.connections, in: account) }
        #expect(
            refusal?.message
                == "quota exceeded: 'ada' has 1 connection (ServerLimits.connections.perPrincipal); retry when some have ended"
        )
        #expect(
            ledger.refusal(.filters, of: 1).message
                == "quota exceeded: this connection has 64 streams with a filter (ServerLimits.filters.perConnection); retry when some have ended"
        )
        withExtendedLifetime(first) {}
        #expect(Set(SharedResource.allCases.map(\.name)).count == SharedResource.allCases.count)
        for resource in SharedResource.allCases {
            #expect(resource.text(of: 2) == "2 \(resource.name)")
            #expect(resource.text(of: 1).hasPrefix("1 ") && resource.text(of: 1) != "1 \(resource.name)")
        }
    }

    @Test("a network has the quota of four hosts; scopes are ordered from the narrowest one")
    func networks() throws {
        let ledger = Self.ledger("connections.perHost", 2)
        var reservations: [QuotaReservation] = []
        func reserve(_ host: Int, network: Int = 1) throws {
            let host = try Self.address("2001:db8:\(network):\(host)::1")
            let account = ledger.account(for: QuotaScopes(connection: nil, principal: nil, host: host))
            reservations.append(try ledger.reserve(.connections, in: account))
        }
        for host in 1...4 {
            for _ in 0..<2 { try reserve(host) }
            let error = #expect(throws: TrebuchetError.self) { try reserve(host) }
            #expect(error?.message.contains("this host has 2 ") == true)
        }
        let error = #expect(throws: TrebuchetError.self) { try reserve(5) }
        #expect(error?.message.contains("this network has 8 connections (ServerLimits.connections.perHost)") == true)
        try reserve(5, network: 2)
        reservations = []
        #expect(ledger.isEmpty && ledger.scopeCount == 0)
        let ipv6 = try Self.address("2001:db8:1:2::3")
        #expect(
            QuotaScopes(connection: 7, principal: "ada", host: ipv6).all
                == [
                    .connection(7), .principal(PrincipalName("ada")), .host(ipv6.number), .network(ipv6.network.number),
                ])
        let ipv4 = try Self.address("192.0.2.7")
        #expect(QuotaScopes(connection: nil, principal: nil, host: ipv4).all == [.host(ipv4.number)])
        for resource in SharedResource.allCases {
            let quotas = ServerLimits().quotas(of: resource)
            #expect(quotas[.network].value == 4 * quotas[.host].value)
            #expect(quotas[.network].setting == quotas[.host].setting)
        }
    }

    @Test("each principal has a quota, and all together the limit of the server")
    func principals() throws {
        let ledger = Self.ledger("connections.total", 3)
        func reserve(_ principal: String?) throws -> QuotaReservation {
            try ledger.reserve(
                .connections, in: ledger.account(for: QuotaScopes(connection: 1, principal: principal, host: nil)))
        }
        let reservations = [try reserve("ada"), try reserve("ada"), try reserve("bob")]
        #expect(throws: TrebuchetError.self) { try reserve(nil) }
        #expect(ledger.scopeCount == 2 && ledger.count(.connections) == 3)
        reservations[0].release()
        _ = try reserve(nil)
    }

    @Test("a scope has one row while it is referenced, and none afterwards")
    func rows() {
        let ledger = QuotaLedger(limits: ServerLimits())
        let ada = QuotaScope.principal(PrincipalName("ada"))
        var one: QuotaRow? = ledger.row(of: ada)
        var same: QuotaRow? = ledger.row(of: ada)
        #expect(one === same && ledger.scopeCount == 1)
        one?.memory?.adjustUsage(by: 60)
        #expect(same?.memory?.usedBytes == 60 && same?.memory?.limit == ServerLimits().memory.total / 4)
        let other = ledger.row(of: .connection(1))
        #expect(other.memory == nil && ledger.scopeCount == 2)
        one = nil
        #expect(one == nil && ledger.row(of: ada).memory?.usedBytes == 60)
        same = nil
        #expect(same == nil && ledger.scopeCount == 1)
        #expect(ledger.row(of: ada).memory?.usedBytes == 0)
        withExtendedLifetime(other) {}
    }

    @Test("uses that exist already count above the limits, and a byte more is refused while memory is short")
    func existing() throws {
        let memory = MemoryBudget(limit: 100)
        let ledger = Self.ledger("idempotency.total", 2, memory: memory)
        let account = ledger.account(for: .server)
        account.add(.recordedResponses, 5)
        #expect(ledger.count(.recordedResponses) == 5)
        #expect(throws: QuotaExceeded.self) { try account.reserve(.recordedResponses) }
        account.release(.recordedResponses, 5)
        memory.adjustUsage(by: 95)
        #expect(throws: QuotaExceeded.self) { try account.reserve(.recordedResponseBytes, 6) }
        #expect(memory.usedBytes == 95 && ledger.isEmpty)
        try account.reserve(.recordedResponseBytes, 5)
        #expect(memory.isExhausted)
        // Persisted responses are not in memory.
        try account.reserve(.persistedResponseBytes, 6)
        #expect(memory.usedBytes == 100)
    }
}
