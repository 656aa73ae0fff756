import Networking
import Trebuchet
import TrebuchetTesting

/// The links from a client to its servers, one faulty link for each.
struct FaultyClientLinks: Sendable {
    private let links: [FaultyLink]

    init(to ports: [Int], seed: UInt64, faults: FaultyLink.Faults) throws {
        links = try ports.map {
            try FaultyLink(
                to: SocketAddress(host: "127.0.0.1", port: $0, isIPv6: false), seed: seed, faults: faults)
        }
    }

    var ports: [Int] { links.map(\.address.port) }

    /// Whether no half-open connection is left that may still deliver messages.
    var isDone: Bool { links.allSatisfy { $0.counters.leftOpen == 0 } }

    func cutAll(_ cut: FaultyLink.Cut) async { for link in links { await link.disconnectAll(cut) } }
    func stall() async { for link in links { await link.pauseTraffic() } }
    func resume() async { for link in links { await link.resumeTraffic() } }

    func addCounters(to totals: inout Totals) {
        for counters in links.map(\.counters) {
            totals.connections += counters.accepted
            totals.cuts += counters.orderlyCloses + counters.resets + counters.halfOpens + counters.lateDeliveries
            totals.shortStalls += counters.stalls
        }
    }

    static func transports(_ ports: [Int]) -> [TrebuchetTransport] {
        ports.map { .webSocket(host: "127.0.0.1", port: $0) }
    }

    /// Parses the ports of all servers, such as `8080,8081`.
    static func ports(_ text: String) -> [Int]? {
        let ports = text.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
        return ports.contains(nil) ? nil : ports.compactMap { $0 }
    }

    /// Returns the ports that a client knows: every second client knows all, in a different order; the others know one.
    static func known(to player: Int, of ports: [Int]) -> [Int] {
        let first = player % ports.count
        let all = ports[first...] + ports[..<first]
        return player / ports.count % 2 == 0 ? Array(all) : [ports[first]]
    }
}
