import Testing

@testable import Networking
import Transports
@testable import WebSockets

/// Clients behind proxies, as a table of `X-Forwarded-For` values.
@Suite struct TrustedProxiesTests {
    private static let proxies = ["127.0.0.1", "::1", "10.0.0.0/8", "2001:db8:a::/48"]

    /// The lines of the header field, and the client found in them.
    private struct Field: CustomTestStringConvertible {
        let lines: [String]
        let client: String?

        init(_ lines: String..., client: String?) {
            self.lines = lines
            self.client = client
        }

        var headers: HTTPHeaders {
            var headers: HTTPHeaders = ["Host": "app.example"]
            for line in lines { headers.add("x-forwarded-for", line) }
            return headers
        }

        var testDescription: String { "\(lines)" }
    }

    @Test(
        "the client is the right-most address that is not a trusted proxy's",
        arguments: [
            Field(client: nil),
            Field("", client: nil),
            Field("203.0.113.7", client: "203.0.113.7"),
            Field("198.51.100.1, 203.0.113.7", client: "203.0.113.7"),
            Field("203.0.113.7, 10.1.2.3", client: "203.0.113.7"),
            Field("203.0.113.7, 10.1.2.3,127.0.0.1", client: "203.0.113.7"),
            Field("198.51.100.1, 203.0.113.7, 10.1.2.3, 10.255.255.255", client: "203.0.113.7"),
            Field("198.51.100.1", "203.0.113.7, 10.1.2.3", client: "203.0.113.7"),
            Field("203.0.113.7", "10.1.2.3", client: "203.0.113.7"),
            // Entries to the left of it are arbitrary.
            Field("unknown, <script>, 203.0.113.7", client: "203.0.113.7"),
            // A request of the proxy itself.
            Field("10.9.9.9", client: "10.9.9.9"),
            Field("10.9.9.9, 10.1.2.3", client: "10.9.9.9"),
            Field(", 203.0.113.7,, 10.1.2.3,", client: "203.0.113.7"),
            Field("203.0.113.7:4711", client: "203.0.113.7"),
            Field("203.0.113.7, 10.1.2.3:80", client: "203.0.113.7"),
            Field("2001:db8::1", client: "2001:db8::1"),
            Field("[2001:db8::1]", client: "2001:db8::1"),
            Field("[2001:db8::1]:4711", client: "2001:db8::1"),
            Field("2001:DB8:0:0::1, 2001:db8:a:ffff::9", client: "2001:db8::1"),
            Field("203.0.113.7, ::ffff:10.1.2.3", client: "203.0.113.7"),
            Field("::ffff:203.0.113.7", client: "203.0.113.7"),
            Field("11.0.0.0", client: "11.0.0.0"),
            Field("9.255.255.255, 127.0.0.1", client: "9.255.255.255"),
            Field("198.51.100.1, 127.0.0.2", client: "127.0.0.2"),
        ])
    private func clients(field: Field) throws {
        let client = try TrustedProxies(Self.proxies).client(in: field.headers)
        #expect(client?.description == field.client)
    }

    @Test(
        "an invalid entry before the client is rejected with 400, whatever precedes it",
        arguments: [
            "unknown", "unix:", "_hidden", "203.0.113.7, unknown", "203.0.113.7, 203.0.113", "203.0.113.256",
            "203.0.113.07",
            "203.0.113.7:", "203.0.113.7:x", "203.0.113.7:123456", "[203.0.113.7]", "[2001:db8::1", "[2001:db8::1]4711",
            "[]", "2001:db8::1::2", "fe80::1%eth0", "203.0.113.7/32", "\"203.0.113.7\"", "203.0.113.7 10.0.0.1", "é",
            "203.0.113.7, nobody, 10.0.0.1",
        ])
    private func malformed(field: String) throws {
        let proxies = try TrustedProxies(Self.proxies)
        let error = #expect(throws: HTTPRejection.self) { _ = try proxies.client(in: ["X-Forwarded-For": field]) }
        #expect(error?.status == 400)
        #expect(error?.reason.contains("is not an address") == true)
    }

    @Test(
        "addresses and ranges contain the addresses with their prefix",
        arguments: [
            ("127.0.0.1", ["127.0.0.1", "::ffff:127.0.0.1"], ["127.0.0.2", "::1"]),
            ("10.0.0.0/8", ["10.0.0.0", "10.255.255.255"], ["9.255.255.255", "11.0.0.0", "::a00:1", "a00::"]),
            ("192.0.2.128/25", ["192.0.2.128", "192.0.2.255"], ["192.0.2.127"]),
            ("192.0.2.1/32", ["192.0.2.1"], ["192.0.2.0", "192.0.2.2"]),
            ("128.0.0.0/1", ["255.255.255.255"], ["127.0.0.1", "ffff::"]),
            ("::1", ["::1", "0:0:0:0:0:0:0:1"], ["::", "::2", "127.0.0.1"]),
            ("2001:db8::/32", ["2001:db8::", "2001:db8:ffff::1"], ["2001:db9::"]),
            ("2001:db8::/64", ["2001:db8::1"], ["2001:db8:0:1::1"]),
            ("2001:db8::8/125", ["2001:db8::f"], ["2001:db8::7", "2001:db8::10"]),
            ("2001:db8::8/128", ["2001:db8::8"], ["2001:db8::9"]),
            ("::ffff:10.0.0.0/104", ["10.1.2.3"], ["11.0.0.0"]),
        ])
    func ranges(range: String, inside: [String], outside: [String]) throws {
        let proxies = try TrustedProxies([range])
        for host in inside { #expect(proxies.contains(SocketAddress(literal: host, port: 1)), "\(host)") }
        for host in outside { #expect(!proxies.contains(SocketAddress(literal: host, port: 1)), "\(host)") }
        #expect(!proxies.contains(nil))
    }

    @Test("an empty list trusts no proxy")
    func none() {
        #expect(TrustedProxies.none.isEmpty)
        #expect(!TrustedProxies.none.contains(SocketAddress(literal: "127.0.0.1", port: 1)))
    }

    @Test(
        "an invalid address or range is rejected with advice",
        arguments: [
            ("", "write 127.0.0.1"), ("localhost", "write 127.0.0.1"), ("*", "write 127.0.0.1"),
            ("10.0.0.0/8/8", "write 127.0.0.1"), ("10.0.0/8", "write 127.0.0.1"), ("127.0.0.1:80", "write 127.0.0.1"),
            ("10.0.0.0/33", "up to 32"), ("10.0.0.0/", "up to 32"), ("10.0.0.0/-1", "up to 32"),
            ("10.0.0.0/+8", "up to 32"), ("::/129", "up to 128"), ("0.0.0.0/0", "all addresses"),
            ("::/0", "all addresses"),
            ("10.0.0.1/8", "write 10.0.0.0/8 or 10.0.0.1"), ("2001:db8::1/64", "write 2001:db8::/64 or 2001:db8::1"),
        ])
    func invalid(text: String, hint: String) {
        let error = #expect(throws: TransportError.self) { _ = try TrustedProxies(["127.0.0.1", text]) }
        #expect(error?.code == .addressInvalid)
        #expect(error?.message.contains(hint) == true, "\(error?.message ?? "")")
    }

    @Test("a connection without a proxy uses 40 bytes for its address")
    func memory() {
        let counter = AddressCounter(limit: 100)
        let entries = (0..<100).compactMap { _ -> CountedConnection? in
            guard case .admitted(let entry) = counter.enter(SocketAddress(literal: "192.0.2.1", port: 1)) else {
                return nil
            }
            return entry
        }
        #expect(entries.count == 100 && entries.allSatisfy { $0.client == nil })
        // The allocator may return more than requested for one of them.
        let sizes = entries.map { usableSize(Unmanaged.passUnretained($0).toOpaque()) }
        #expect(sizes.min() == 40)
    }

    @Test("a client behind a proxy counts with the others of its address, with and without a proxy")
    func counted() throws {
        let counter = AddressCounter(limit: 2)
        var entries: [CountedConnection?] = []
        func enter(_ decision: AddressCounter.Decision) -> Bool {
            guard case .admitted(let entry) = decision else { return false }
            entries.append(entry)
            return true
        }
        #expect(enter(counter.enter(SocketAddress(literal: "192.0.2.1", port: 1))))
        #expect(enter(counter.enter(IPAddress("192.0.2.1")!)))
        #expect(!enter(counter.enter(IPAddress("::ffff:192.0.2.1")!)))
        #expect(enter(counter.enter(IPAddress("192.0.2.2")!)))
        #expect(entries.last??.client == SocketAddress(literal: "192.0.2.2", port: 0))
        entries.removeFirst()
        #expect(enter(counter.enter(IPAddress("192.0.2.1")!)))
        for _ in 0..<5 { #expect(enter(counter.enter(IPAddress("127.0.0.1")!)), "loopback does not count") }
    }
}

/// The size that the allocator reserved for an object.
@_silgen_name("malloc_usable_size") private func usableSize(_ object: UnsafeMutableRawPointer) -> Int
