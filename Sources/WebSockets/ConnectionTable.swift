internal import Networking

/// The connections of a server on one reactor; touched there alone.
///
/// `@unchecked Sendable`: confined to the reactor; other threads hold it to send closures there.
final class ConnectionTable: @unchecked Sendable {
    let reactor: Reactor
    private var sockets: [WebSocket] = []
    private var upgrades: [ObjectIdentifier: ServerUpgrade] = [:]
    private(set) var isDraining = false
    private var whenEmpty: CheckedContinuation<Void, Never>?

    init(reactor: Reactor) { self.reactor = reactor }

    var count: Int { sockets.count + upgrades.count }

    /// Bytes that wait to be sent, all connections together.
    var pendingBytes: Int { sockets.reduce(0) { $0 + $1.pendingBytes } }

    func add(_ socket: WebSocket) {
        socket.table = self
        socket.tableIndex = sockets.count
        sockets.append(socket)
    }

    /// The last one takes the place of the one that goes.
    func remove(_ socket: WebSocket) {
        let index = socket.tableIndex
        sockets.swapAt(index, sockets.count - 1)
        sockets[index].tableIndex = index
        sockets.removeLast()
        reportIfEmpty()
    }

    func add(_ upgrade: ServerUpgrade) { upgrades[ObjectIdentifier(upgrade)] = upgrade }

    func remove(_ upgrade: ServerUpgrade) {
        guard upgrades.removeValue(forKey: ObjectIdentifier(upgrade)) != nil else { return }
        reportIfEmpty()
    }

    /// Ends the connections whose handshake is not done. Comes after the last connection has been accepted.
    func refuseUpgrades() async {
        await reactor.perform { for upgrade in Array(self.upgrades.values) { upgrade.cancel() } }
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
        guard isDraining, count == 0, let continuation = whenEmpty else { return }
        whenEmpty = nil
        continuation.resume()
    }
}
