import Testing
import Transports

@testable import TrebuchetRedis

/// Server addresses, hash slots and parsed cluster descriptions.
struct AddressTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let text: String
        var kind = RedisURL.Kind.server
        let hosts: String
        var isSecure = false
        var user: String?
        var password: String?
        var database = 0
        var testDescription: String { text }
    }

    @Test(
        "an address contains host, user and database",
        arguments: [
            Row(text: "redis://db", hosts: "db:6379"),
            Row(text: "REDIS://db:7000/3", hosts: "db:7000", database: 3),
            Row(text: "rediss://:s%3Acret@[::1]:1", hosts: "[::1]:1", isSecure: true, password: "s:cret"),
            Row(text: "redis://default:p@db/", hosts: "db:6379", password: "p"),
            Row(text: "redis://ada:p%40@x@db", hosts: "db:6379", user: "ada", password: "p@@x"),
            Row(text: "redis+sentinel://a,b:1/main", kind: .sentinels(masterName: "main"), hosts: "a:26379 b:1"),
            Row(
                text: "rediss+sentinel://u:p@a/my%2Fdb", kind: .sentinels(masterName: "my/db"), hosts: "a:26379",
                isSecure: true, user: "u", password: "p"),
            Row(text: "sentinel://a/m", kind: .sentinels(masterName: "m"), hosts: "a:26379"),
            Row(text: "redis+cluster://a:1,[::1]:2,c", kind: .cluster, hosts: "a:1 [::1]:2 c:6379"),
        ])
    func addresses(_ row: Row) throws {
        let url = try RedisURL(row.text)
        #expect(url.kind == row.kind)
        #expect(url.endpoints.map(\.description).joined(separator: " ") == row.hosts)
        #expect(url.isSecure == row.isSecure)
        #expect(url.user == row.user)
        #expect(url.password == row.password)
        #expect(url.database == row.database)
    }

    @Test(
        "an invalid address is refused with an error that omits its password",
        arguments: [
            "", "db:6379", "http://db", "redis://", "redis://:s3cret@", "redis://a:s3cret@b:x", "redis://b:0",
            "redis://b:65536",
            "redis://a,b", "redis://b/x", "redis://b/-1", "redis://s3cret@b", "redis://a:%zzs3cret@b",
            "redis://a:%fes3cret@b",
            "redis://b?db=1", "redis+sentinel://a", "redis+sentinel://a,/m", "redis+cluster://a/1", "redis://[::1",
            "redis://[::1]x",
        ])
    func refused(_ text: String) {
        let error = #expect(throws: TransportError.self) { try RedisURL(text) }
        #expect(error?.code == .addressInvalid)
        #expect(error?.message.contains("s3cret") == false)
    }

    /// The expected numbers are those of `CLUSTER KEYSLOT`.
    @Test(
        "a key's slot is the slot of its hash tag",
        arguments: [
            ("", 0), ("123456789", 12_739), ("foo", 12_182), ("{user1000}.following", 3_443),
            ("{user1000}.followers", 3_443),
            ("foo{}{bar}", 8_363), ("foo{{bar}}zap", 4_015), ("foo{bar}{zap}", 5_061), ("bar", 5_061),
            ("foo{bar", 15_278),
        ])
    func slots(_ key: String, _ slot: Int) {
        #expect(HashSlot.of(Array(key.utf8)) == slot)
    }

    @Test("a cluster's redirection to another node is parsed, and similar texts are not")
    func redirects() {
        let asked = RedisURL.Endpoint(host: "a", port: 1)
        func redirect(_ text: String) -> RedisRedirect? { RedisRedirect(RedisErrorReply(text), from: asked) }
        #expect(redirect("MOVED 3999 127.0.0.1:6381") == .moved(slot: 3_999, .init(host: "127.0.0.1", port: 6_381)))
        #expect(redirect("ASK 1 ::1:7") == .ask(slot: 1, .init(host: "::1", port: 7)))
        #expect(redirect("MOVED 0 :7") == .moved(slot: 0, .init(host: "a", port: 7)))
        for text in [
            "MOVED", "MOVED 1", "MOVED x b:1", "MOVED 16384 b:1", "MOVED 1 b:0", "MOVED 1 b", "ERR 1 b:1",
            "MOVED 1 b:1 c",
        ] {
            #expect(redirect(text) == nil, "\(text)")
        }
    }
}
