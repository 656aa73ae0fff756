internal import Networking
internal import Platform
internal import Synchronization
internal import TrebuchetCluster

/// The direct links of a node to other nodes. Messages that cannot use one go through the engine.
final class NodeLinks: Sendable {
    /// The link to one node.
    private struct Peer {
        var link: OutboundNodeLink?
        var isOpen = false
        /// The time before which no further attempt is made.
        var nextTry: UInt64 = 0
        /// True after the failure was logged.
        var isFailureLogged = false
    }

    /// The links by node.
    private struct State {
        var peers: [ClusterNode: Peer] = [:]
        var isClosed = false
    }

    private static let retryInterval = Duration.seconds(1)

    private let peers: any NodeLinkOwner
    private let identity: NodeLinkIdentity
    private let reactors: ReactorGroup
    private let log: @Sendable (String) -> Void
    private let state = Mutex(State())

    init(
        _ peers: any NodeLinkOwner, _ identity: NodeLinkIdentity, on reactors: ReactorGroup,
        log: @escaping @Sendable (String) -> Void
    ) {
        (self.peers, self.identity, self.reactors, self.log) = (peers, identity, reactors, log)
    }

    /// Sends a message with its number on this path. Returns false if it must take another path.
    func send(_ bytes: [UInt8], number: UInt64, to node: ClusterNode) async -> Bool {
        guard let link = link(to: node) else { return false }
        return await withCheckedContinuation { continuation in
            link.reactor.execute { link.send(bytes, number: number) { continuation.resume(returning: $0) } }
        }
    }

    /// Closes the links to all nodes that are not in `nodes`.
    func closeLinks(except nodes: [ClusterNode]) {
        let nodes = Set(nodes)
        let removed = state.withLock { state in
            let removed = state.peers.filter { !nodes.contains($0.key) }
            for node in removed.keys { state.peers[node] = nil }
            return removed.values.compactMap(\.link)
        }
        for link in removed { link.close() }
    }

    var openCount: Int { state.withLock { $0.peers.values.count { $0.isOpen } } }

    /// Ends the existing links at once; new ones replace them.
    func resetLinks() {
        for link in state.withLock({ $0.peers.values.compactMap(\.link) }) { link.reset() }
    }

    func close() {
        let links = state.withLock { state in
            state.isClosed = true
            defer { state.peers = [:] }
            return state.peers.values.compactMap(\.link)
        }
        for link in links { link.close() }
    }

    /// Returns an open link; starts to connect if there is none.
    private func link(to node: ClusterNode) -> OutboundNodeLink? {
        let now = MonotonicClock.now
        let known: (link: OutboundNodeLink?, isTrying: Bool) = state.withLock { state in
            guard !state.isClosed else { return (nil, false) }
            var peer = state.peers[node] ?? Peer()
            if peer.link != nil || now < peer.nextTry { return (peer.isOpen ? peer.link : nil, false) }
            peer.nextTry = now &+ Self.retryInterval.nanoseconds
            state.peers[node] = peer
            return (nil, true)
        }
        guard known.isTrying, let address = peers.announcement(of: node)?.address,
            let reactor = reactors.reactors.randomElement()
        else { return known.link }
        let link = OutboundNodeLink(to: node, peers, identity, on: reactor) { [weak self] in
            self?.didOpen(node, address)
        } didEnd: { [weak self] link, reason in
            self?.didEnd(link, address, reason)
        }
        let isAdded = state.withLock { state in
            guard !state.isClosed, state.peers[node] != nil else { return false }
            state.peers[node]?.link = link
            return true
        }
        if isAdded { Task { await link.connect(to: address) } }
        return nil
    }

    private func didOpen(_ node: ClusterNode, _ address: NodeAddress) {
        let shouldLog = state.withLock { state in
            guard var peer = state.peers[node] else { return false }
            let shouldLog = peer.isFailureLogged
            (peer.isOpen, peer.isFailureLogged) = (true, false)
            state.peers[node] = peer
            return shouldLog
        }
        if shouldLog { log("node \(node.name) is reachable at \(address.host):\(address.port) again") }
    }

    private func didEnd(_ link: OutboundNodeLink, _ address: NodeAddress, _ reason: String) {
        let shouldLog = state.withLock { state in
            guard var peer = state.peers[link.node], peer.link === link else { return false }
            (peer.link, peer.isOpen) = (nil, false)
            let shouldLog = !peer.isFailureLogged
            peer.isFailureLogged = true
            state.peers[link.node] = peer
            return shouldLog
        }
        if shouldLog {
            log(
                "node \(link.node.name) is not reachable at \(address.host):\(address.port): \(reason); "
                    + "messages to it go through the coordination store")
        }
    }
}
