/// The map from the slots of a cluster to their nodes.
struct SlotMap: Equatable, Sendable {
    private(set) var endpoints: [RedisURL.Endpoint] = []
    /// Indices in `endpoints`; -1 for a slot without a known node.
    private var endpointIndices = [Int32](repeating: -1, count: HashSlot.count)

    init() {}

    /// Parses the reply to CLUSTER SLOTS; nil if it is invalid. The first node of each range is its primary.
    init?(_ answer: RESPValue, from asked: RedisURL.Endpoint) {
        guard let ranges = answer.elements, !ranges.isEmpty else { return nil }
        for range in ranges {
            guard let parts = range.elements, parts.count >= 3, let first = parts[0].number, let last = parts[1].number,
                0 <= first, first <= last, last < HashSlot.count, let node = parts[2].elements, node.count >= 2,
                let port = node[1].number, (1...65_535).contains(port)
            else { return nil }
            // A node that does not know its own host name omits it.
            let host = node[0].text.flatMap { $0.isEmpty || $0.utf8.elementsEqual("?".utf8) ? nil : $0 } ?? asked.host
            let index = index(of: RedisURL.Endpoint(host: host, port: Int(port)))
            for slot in Int(first)...Int(last) { endpointIndices[slot] = index }
        }
    }

    var isEmpty: Bool { endpoints.isEmpty }

    subscript(slot: Int) -> RedisURL.Endpoint? {
        endpointIndices[slot] < 0 ? nil : endpoints[Int(endpointIndices[slot])]
    }

    mutating func set(_ slot: Int, _ endpoint: RedisURL.Endpoint) { endpointIndices[slot] = index(of: endpoint) }

    private mutating func index(of endpoint: RedisURL.Endpoint) -> Int32 {
        if let index = endpoints.firstIndex(of: endpoint) { return Int32(index) }
        endpoints.append(endpoint)
        return Int32(endpoints.count - 1)
    }
}
