internal import Bytes
internal import Networking
internal import TrebuchetWire

/// What an actor system keeps for one reactor: coders, and the states that changed in this turn.
///
/// `@unchecked Sendable`: touched on its reactor alone.
final class ReactorShard: EndOfTurn, @unchecked Sendable {
    let reactor: Reactor
    /// Writes persisted states, at a server that has a store. Set before actors are exposed.
    var writer: StateWriter?
    private let userInfo: [CodingUserInfoKey: any Sendable]
    private let current: ValueCoder
    private let legacy: ValueCoder
    private var markedSources: [any AnyStateSource] = []
    private var markedNodes: [StateNode] = []
    private var nodes: [NodeKey: StateNode] = [:]
    private var isQueued = false
    /// How much may still be encoded in this turn without waiting for its end.
    private var eagerBytes = ReactorShard.eagerBytesPerTurn

    /// States that change several times in a turn reach their subscribers version by version while all of them together
    /// stay below this; beyond it, versions of the same turn are skipped.
    static let eagerBytesPerTurn = 64 << 10
    /// What an update counts at least, so that a turn holds no more than 32 of them.
    static let leastEagerBytes = 2 << 10

    private struct NodeKey: Hashable {
        let source: ObjectIdentifier
        let version: ProtocolVersion
    }

    init(_ reactor: Reactor, userInfo: [CodingUserInfoKey: any Sendable]) {
        self.reactor = reactor
        self.userInfo = userInfo
        current = ValueCoder(version: .v3, userInfo: userInfo)
        legacy = ValueCoder(version: .v2, userInfo: userInfo)
    }

    func coder(for version: ProtocolVersion) -> ValueCoder { version == .v3 ? current : legacy }

    /// A coder for a task that leaves the reactor.
    func newCoder(for version: ProtocolVersion) -> ValueCoder { ValueCoder(version: version, userInfo: userInfo) }

    /// Whether a state has changed in this turn and not everybody has been told.
    var hasMarked: Bool { isQueued }

    /// Whether a state's actor lives on this reactor.
    func isHome(of source: any AnyStateSource) -> Bool { source.home === self }

    func mark(_ source: any AnyStateSource) {
        markedSources.append(source)
        queue()
    }

    func mark(_ node: StateNode) {
        markedNodes.append(node)
        queue()
    }

    private func queue() {
        guard !isQueued else { return }
        isQueued = true
        reactor.atEndOfTurn(self)
    }

    /// Hands the states that changed to their nodes on all reactors.
    func publishMarked() {
        guard !markedSources.isEmpty else { return }
        var sources: [any AnyStateSource] = []
        swap(&sources, &markedSources)
        for source in sources { eagerBytes -= source.publish() }
    }

    /// At the end of a call: what it changed becomes a version of its own, while the turn has room for it.
    func callDidEnd() {
        if eagerBytes > 0 { publishMarked() }
    }

    func endOfTurn() {
        publishMarked()
        eagerBytes = Self.eagerBytesPerTurn
        var flushing: [StateNode] = []
        swap(&flushing, &markedNodes)
        isQueued = false
        for node in flushing { node.flush() }
    }

    // MARK: Nodes

    var nodeCount: Int { nodes.count }

    /// The node of a source on this reactor, and whether it was made just now (then it must be attached).
    func node(for source: any AnyStateSource, version: ProtocolVersion) -> (node: StateNode, isNew: Bool) {
        let key = NodeKey(source: ObjectIdentifier(source), version: version == .v3 ? .v3 : .v2)
        if let node = nodes[key] { return (node, false) }
        let node = StateNode(source, version: key.version, shard: self)
        nodes[key] = node
        return (node, true)
    }

    /// A node that nobody needs any more.
    func release(_ node: StateNode) {
        let key = NodeKey(source: ObjectIdentifier(node.source), version: node.version)
        if nodes[key] === node { nodes[key] = nil }
        node.source.detach(node)
    }
}
