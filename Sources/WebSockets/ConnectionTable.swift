internal import Networking

/// The connections of a server on one reactor; touched there alone.
///
/// `@unchecked Sendable`: confined to the reactor; other threads hold it to send closures there.
final class ConnectionTable: @unchecked Sendable {
    let reactor: Reactor
    /// For all connections with which compression was agreed on.
    let codecs = CompressionCodecs()
    private var sockets: [WebSocket] = []
    private var upgrades: [ObjectIdentifier: ServerUpgrade] = [:]
    private var lastNumber: UInt64 = 0
    /// Connections that are ended as others take their places, and do not count any more.
    private var givingWay = 0
    private(set) var isDraining = false
    private var whenEmpty: CheckedContinuation<Void, Never>?
    /// Who waits for the end of those that are no WebSockets.
    private var whenUpgraded: [CheckedContinuation<Void, Never>] = []

    private let beat: Duration
    private var isBeating = false
    private var part = 0
    /// A beat comes to one part of the sockets at a time, so that many of them do not hold up the reactor.
    private static let parts = 16

    /// - Parameter beat: how often each socket's keepalive gets a beat.
    init(reactor: Reactor, beat: Duration) {
        self.reactor = reactor
        self.beat = beat
    }

    var count: Int { sockets.count + upgrades.count - givingWay }

    /// Bytes that wait to be sent, all connections together.
    var pendingBytes: Int { sockets.reduce(0) { $0 + $1.pendingBytes } }

    func add(_ socket: WebSocket) {
        socket.table = self
        socket.tableIndex = sockets.count
        sockets.append(socket)
        if !isBeating { startBeating() }
    }

    /// The last one takes the place of the one that goes.
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
        // Of the list as it is now: a beat may end a connection.
        let sockets = sockets
        for index in stride(from: part, to: sockets.count, by: Self.parts) { sockets[index].beat() }
        startBeating()
    }

    func add(_ upgrade: ServerUpgrade) { upgrades[ObjectIdentifier(upgrade)] = upgrade }

    /// Ends the connection that has been there longest without asking for anything, if there is one.
    func makeRoom() {
        guard let oldest = upgrades.values.lazy.filter(\.isSilent).min(by: { $0.number < $1.number }) else { return }
        givingWay += 1
        oldest.giveWay()
    }

    /// For one that comes: they go up.
    func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    func remove(_ upgrade: ServerUpgrade) {
        guard upgrades.removeValue(forKey: ObjectIdentifier(upgrade)) != nil else { return }
        if upgrade.givesWay { givingWay -= 1 }
        reportIfUpgraded()
        reportIfEmpty()
    }

    /// Ends the connections whose handshake is not done, those that get a page when they have it. Comes after the last connection has
    /// been accepted.
    func refuseUpgrades() async {
        await reactor.perform { for upgrade in Array(self.upgrades.values) { upgrade.endBehindAnswer() } }
    }

    /// Returns when those of `refuseUpgrades` have ended, which they do after `limit` in any case.
    func endUpgrades(within limit: Duration) async {
        await withCheckedContinuation { continuation in
            reactor.execute {
                self.whenUpgraded.append(continuation)
                self.reportIfUpgraded()
                guard !self.upgrades.isEmpty else { return }
                self.reactor.schedule(after: limit) {
                    for upgrade in Array(self.upgrades.values) { upgrade.cancel() }
                }
            }
        }
    }

    private func reportIfUpgraded() {
        guard upgrades.isEmpty else { return }
        for continuation in whenUpgraded { continuation.resume() }
        whenUpgraded = []
    }

    /// Closes every connection and returns when the last has gone; the time limits of closing see to it that it does.
    func drain(code: WebSocketCloseCode) async {
        await withCheckedContinuation { continuation in
            reactor.execute {
                if self.isDraining {
                    // A second call does not wait for what the first one began.
                    return continuation.resume()
                }
                self.isDraining = true
                self.whenEmpty = continuation
                for upgrade in Array(self.upgrades.values) { upgrade.cancel() }
                for socket in self.sockets { socket.close(code: code, reason: "server shuts down") }
                self.reportIfEmpty()
            }
        }
    }

    private func reportIfEmpty() {
        guard isDraining, sockets.isEmpty, upgrades.isEmpty, let continuation = whenEmpty else { return }
        whenEmpty = nil
        continuation.resume()
    }
}
