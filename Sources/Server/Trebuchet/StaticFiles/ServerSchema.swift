internal import Glibc
internal import WebSockets

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The schema of the actors of a server: `{"actors":{"todos":"Demo.TodoList"},"types":[…]}`.
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

    /// Returns whether a request comes from this machine, as far as that can be known: from a loopback address, to a loopback
    /// name, and without a proxy.
    static func isOfLocalClient(_ request: PlainRequest) -> Bool {
        guard !request.isFromProxy, let address = request.remoteAddress, AddressKey(address)?.isLoopback == true else {
            return false
        }
        let headers = request.head.headers
        guard let host = headers["Host"], HostAndPort(host)?.isLoopback == true else { return false }
        // Header fields that proxies add. A proxy that is not listed in `trustedProxies` may still forward requests of other
        // machines.
        return ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via"]
            .allSatisfy { headers[$0] == nil }
    }
}
