import Bytes
import Networking
import Testing
import Transports

@testable import WebSockets

/// The quotas of an IPv6 /48 network, besides those of its hosts.
@Suite struct NetworkQuotaTests {
    private func address(_ text: String) throws -> SocketAddress { try #require(SocketAddress(literal: text, port: 0)) }

    @Test("the network of an IPv6 host is its /48 network, and an IPv4 host has none")
    func keys() throws {
        func key(_ text: String) throws -> AddressKey { try #require(AddressKey(address(text))) }
        #expect(try key("2001:db8:1:2::3").network == key("2001:db8:1:ffff::1").network)
        #expect(try key("2001:db8:1:2::3").network != key("2001:db8:2:2::3").network)
        #expect(try key("2001:db8:1::1").network != key("2001:db8:1::1"))
        #expect(try key("2001:db8:1::1").network.network == key("2001:db8:1::1").network)
        for text in ["192.0.2.1", "::ffff:192.0.2.1", "::1"] { #expect(try key(text).network == key(text)) }
    }

    @Test("a network has the connections of four hosts, and gets them back")
    func connections() throws {
        let counter = AddressCounter(limit: 2)
        func enter(_ text: String) throws -> CountedConnection? {
            guard case .admitted(let connection) = counter.enter(try address(text)) else { return nil }
            return connection
        }
        var connections: [CountedConnection] = []
        for number in 0..<8 { connections.append(try #require(try enter("2001:db8:1:\(number)::1"))) }
        #expect(try enter("2001:db8:1:9::1") == nil)
        let other = try enter("2001:db8:2::1")
        #expect(other != nil)
        connections.removeLast()
        #expect(try enter("2001:db8:1:9::1") != nil)
        connections = []
        for _ in 0..<2 { connections.append(try #require(try enter("2001:db8:1:9::1"))) }
        #expect(try enter("2001:db8:1:9::1") == nil, "the quota of the host")
    }

    @Test("the hosts of a network buffer no more than a half of all memory together")
    func memory() throws {
        var limits = WebSocketLimits()
        limits.bufferedBytes = 1_000_000
        limits.bufferedBytesPerHost = 300_000
        limits.bufferedBytesPerConnection = 300_000
        let memory = ServerMemory(limits, shared: nil)
        func account(_ text: String) throws -> MemoryAccount { memory.makeAccount(for: try address(text)) }
        let (one, two) = (try account("2001:db8:1:1::1"), try account("2001:db8:1:2::1"))
        #expect(one.adjustUsage(by: 250_000) == nil && two.adjustUsage(by: 200_000) == nil)
        #expect(memory.refusal(of: try address("2001:db8:1:3::1")) == nil)
        #expect(two.adjustUsage(by: 50_001)?.holder == .address)
        #expect(memory.refusal(of: try address("2001:db8:1:3::1"))?.holder == .address)
        #expect(memory.refusal(of: try address("2001:db8:2:3::1")) == nil)
        #expect(throws: MemoryLimitExceeded.self) { try account("2001:db8:1:3::1").reserve(1) }
        one.release(250_000)
        #expect(memory.refusal(of: try address("2001:db8:1:3::1")) == nil)
        try account("2001:db8:1:3::1").reserve(1)
    }
}
