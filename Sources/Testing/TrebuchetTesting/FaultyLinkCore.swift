internal import Networking
internal import Synchronization
internal import Transports

/// The state of a link on its reactor.
///
/// `@unchecked Sendable`: it is accessed only on its reactor, except `counters`, which has a lock, and constants.
final class FaultyLinkCore: @unchecked Sendable {
    let reactor: Reactor
    let server: SocketAddress
    /// The schedule of later connections.
    private(set) var schedule: FaultSchedule
    private let counters = Mutex(FaultyLink.Counters())
    private var connections: [Int: FaultyConnection] = [:]
    private var lastNumber = 0
    private(set) var isStalled = false
    private var isClosed = false

    init(reactor: Reactor, server: SocketAddress, schedule: FaultSchedule) {
        self.reactor = reactor
        self.server = server
        self.schedule = schedule
    }

    var currentCounters: FaultyLink.Counters { counters.withLock { $0 } }

    func count(_ change: (inout FaultyLink.Counters) -> Void) { counters.withLock { change(&$0) } }

    func accept(_ channel: ByteChannel) {
        guard !isClosed else { return }
        lastNumber += 1
        count { $0.accepted += 1 }
        let connection = FaultyConnection(number: lastNumber, core: self)
        do {
            try connection.start(channel)
            connections[lastNumber] = connection
        } catch {
            // The process can watch no more descriptors; the client sees the connection end.
            count { $0.failedConnects += 1 }
        }
    }

    func remove(_ connection: FaultyConnection) { connections[connection.number] = nil }

    func cutAll(_ cut: FaultyLink.Cut) {
        for connection in Array(connections.values) { connection.cut(cut) }
    }

    func setSchedule(_ schedule: FaultSchedule) { self.schedule = schedule }

    func setStalled(_ isStalled: Bool) {
        self.isStalled = isStalled
        if !isStalled { for connection in Array(connections.values) { connection.pump() } }
    }

    /// Closes all connections. Returns the tasks to await for the release of all resources.
    func close() -> [Task<Void, Never>] {
        isClosed = true
        return Array(connections.values).compactMap { $0.close() }
    }
}
