internal import Networking
internal import Transports

/// The connections of a server on one reactor. Only on that reactor.
final class ConnectionTable {
    let reactor: Reactor
    /// The codecs for all connections with compression.
    let codecs = CompressionCodecs()
    private var sockets: [WebSocket] = []
    private var upgrades: [ObjectIdentifier: ServerUpgrade] = [:]
    private var lastNumber: UInt64 = 0
    /// The number of evicted connections that are not closed yet; they do not count.
    private var evicting = 0
    private(set) var isDraining = false
    private var whenEmpty: CheckedContinuation<Void, Never>?
    /// The continuations that wait until no connection is in the handshake or receives a page.
    private var whenUpgraded: [CheckedContinuation<Void, Never>] = []

    private let beat: Duration
    private var isBeating = false
    private var part = 0
    /// The number of groups of sockets. A beat handles one group at a time, so that many sockets do not block the reactor.
    private static let parts = 16

    /// Creates a table.
    ///
    /// - Parameter beat: the interval of each socket's keepalive check.
    init(reactor: Reactor, beat: Duration) {
        self.reactor = reactor
        self.beat = beat
    }

    var count: Int { sockets.count + upgrades.count - evicting }

    /// The number of unsent output bytes of all connections.
    var pendingBytes: Int { sockets.reduce(0) { $0 + $1.pendingBytes } }

    func insert(_ socket: WebSocket) {
        socket.table = self
        socket.tableIndex = sockets.count
        sockets.append(socket)
        if !isBeating { startBeating() }
    }

    /// Removes a socket; the last one moves to its index.
    func remove(_ socket: WebSocket) {
        let index = socket.tableIndex
        sockets.swapAt(index, sockets.count - 1)
        sockets[index].tableIndex = index
        sockets.removeLast()
        reportIfEmpty()
    }

    private func startBeating() {
        isBeating = true
        reactor.schedule(after: beat / Self.parts) { [weak self] in self?.beatPart() }
    }

    private func beatPart() {
        isBeating = false
        guard !sockets.isEmpty else { return }
        part = (part + 1) % Self.parts
        // A copy of the list, because a beat may close a connection.
        let sockets = sockets
        for index in stride(from: part, to: sockets.count, by: Self.parts) { sockets[index].beat() }
        startBeating()
    }

    func insert(_ upgrade: ServerUpgrade) { upgrades[ObjectIdentifier(upgrade)] = upgrade }

    /// Evicts the connection that has been waiting longest without a request in progress, if there is one.
    func makeRoom() {
        guard let oldest = upgrades.values.lazy.filter(\.isSilent).min(by: { $0.number < $1.number }) else { return }
        evicting += 1
        oldest.evict()
    }

    /// Returns the next number of a connection, in ascending order.
    func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    func remove(_ upgrade: ServerUpgrade) {
        guard upgrades.removeValue(forKey: ObjectIdentifier(upgrade)) != nil else { return }
        if upgrade.isEvicted { evicting -= 1 }
        reportIfUpgraded()
        reportIfEmpty()
    }

    private func refuseUpgrades() { for upgrade in Array(upgrades.values) { upgrade.endAfterResponse() } }

    private func endUpgrades(within limit: Duration, _ done: CheckedContinuation<Void, Never>) {
        whenUpgraded.append(done)
        reportIfUpgraded()
        guard !upgrades.isEmpty else { return }
        reactor.schedule(after: limit) { for upgrade in Array(self.upgrades.values) { upgrade.cancel() } }
    }

    private func reportIfUpgraded() {
        guard upgrades.isEmpty else { return }
        for continuation in whenUpgraded { continuation.resume() }
        whenUpgraded = []
    }

    private func drain(code: WebSocketCloseCode, _ done: CheckedContinuation<Void, Never>) {
        // A second call does not wait for the drain that the first one started.
        guard !isDraining else { return done.resume() }
        isDraining = true
        whenEmpty = done
        for upgrade in Array(upgrades.values) { upgrade.cancel() }
        for socket in sockets { socket.close(code: code, reason: "server is shutting down") }
        reportIfEmpty()
    }

    private func reportIfEmpty() {
        guard isDraining, sockets.isEmpty, upgrades.isEmpty, let continuation = whenEmpty else { return }
        whenEmpty = nil
        continuation.resume()
    }

    /// A table as other threads hold it.
    struct Handle: Sendable {
        let reactor: Reactor
        private let bound: LoopBound<ConnectionTable>

        /// Creates a table.
        ///
        /// - Parameter beat: the interval of each socket's keepalive check.
        init(reactor: Reactor, beat: Duration) {
            self.reactor = reactor
            bound = LoopBound(passing: ConnectionTable(reactor: reactor, beat: beat), to: reactor)
        }

        /// The table. Only on its reactor.
        var table: ConnectionTable { bound.value }

        /// Closes the connections in the handshake, and those that receive a page after its last byte. Called after the last
        /// connection was accepted.
        func refuseUpgrades() async { await reactor.perform { table.refuseUpgrades() } }

        /// Returns when the connections of `refuseUpgrades` have ended, at the latest after `limit`.
        func endUpgrades(within limit: Duration) async {
            await withCheckedContinuation { done in reactor.execute { table.endUpgrades(within: limit, done) } }
        }

        /// Closes every connection and returns when the last has ended, which the time limits of closing guarantee.
        func drain(code: WebSocketCloseCode) async {
            await withCheckedContinuation { done in reactor.execute { table.drain(code: code, done) } }
        }
    }
}
