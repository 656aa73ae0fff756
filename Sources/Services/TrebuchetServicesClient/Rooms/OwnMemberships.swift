/// The newest memberships that a client has had in a room: their events and presences are its own. Pure.
struct OwnMemberships: Sendable {
    /// The maximum number of memberships; the oldest are forgotten.
    static let limit = 64
    /// The maximum size of an id in bytes. The ids of `Room` are shorter.
    static let longest = 256

    private(set) var ids: Set<String> = []
    /// The ids, oldest first.
    private var order: [String] = []

    /// Adds a membership that a server has named.
    mutating func insert(_ id: String) {
        guard id.utf8.count <= Self.longest, ids.insert(id).inserted else { return }
        order.append(id)
        if order.count > Self.limit { ids.remove(order.removeFirst()) }
    }
}
