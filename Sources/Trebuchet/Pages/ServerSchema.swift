internal import Glibc
internal import WebSockets

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A type of actors as its dispatch table knows it.
struct ActorTypeDescription: Encodable, Sendable {
    struct Method: Encodable, Sendable {
        /// `addTodo(title:)`
        let target: String
        let arguments: Int
        let isIdempotent: Bool
        let isGeneric: Bool

        private enum CodingKeys: String, CodingKey {
            case target, arguments
            case isIdempotent = "idempotent"
            case isGeneric = "generic"
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(target, forKey: .target)
            try container.encode(arguments, forKey: .arguments)
            // What says nothing is left out.
            if isIdempotent { try container.encode(true, forKey: .isIdempotent) }
            if isGeneric { try container.encode(true, forKey: .isGeneric) }
        }
    }

    let type: String
    let methods: [Method]
    var states: [String]
    var events: [String]
}

/// What a server hosts: `{"actors":{"todos":"Demo.TodoList"},"types":[…]}`.
struct ServerSchema: Encodable {
    let actors: [String: String]
    let types: [ActorTypeDescription]

    init(_ exposed: [(name: String, type: ActorType)]) {
        actors = Dictionary(exposed.map { ($0.name, $0.type.name) }) { first, _ in first }
        var described: [String: ActorTypeDescription] = [:]
        for (_, type) in exposed { described[type.name] = type.description }
        types = described.values.sorted { $0.type < $1.type }
    }

    var json: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        return ((try? encoder.encode(self)).map { Array($0) } ?? Array("{}".utf8)) + [UInt8(ascii: "\n")]
    }

    /// Whether a request comes from this machine itself, as far as that can be known: from its own address, under a name of its
    /// own, and handed on by nobody.
    static func isOfThisMachine(_ request: PlainRequest) -> Bool {
        guard !request.isFromProxy, let address = request.remoteAddress, AddressKey(address)?.isLoopback == true else {
            return false
        }
        let headers = request.head.headers
        guard let host = headers["Host"], HostAndPort(host)?.isLoopback == true else { return false }
        // What proxies add. One that is not named in `trustedProxies` speaks for strangers all the same.
        return ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via"]
            .allSatisfy { headers[$0] == nil }
    }
}
