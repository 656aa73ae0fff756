internal import Networking
internal import Synchronization
internal import Transports

/// The state of a link on its reactor.
final class FaultyLinkCore: Sendable {
    /// The part that is used on the reactor only.
    private struct State {
        /// The schedule of later connections.
        var schedule: FaultSchedule
        var connections: [Int: FaultyConnection] = [:]
        var lastNumber = 0
        var isStalled = false
        var isClosed = false
    }

    let reactor: Reactor
    let server: SocketAddress
    private let state: LoopVariable<State>
    private let counters = Mutex(FaultyLink.Counters())

    init(reactor: Reactor, server: SocketAddress, schedule: FaultSchedule) {
        self.reactor = reactor
        self.server = server
        state = LoopVariable(State(schedule: schedule), on: reactor)
    }

    var schedule: FaultSchedule { state.value.schedule }
    var isStalled: Bool { state.value.isStalled }
    var currentCounters: FaultyLink.Counters { counters.withLock { $0 } }

    func count(_ change: (inout FaultyLink.Counters) -> Void) { counters.withLock { change(&$0) } }

    func accept(_ channel: ByteChannel) {
        guard !state.value.isClosed else { return }
        state.value.lastNumber += 1
        let number = state.value.lastNumber
        count { $0.accepted += 1 }
        let connection = FaultyConnection(number: number, core: self)
        do {
            try connection.start(channel)
            state.value.connections[number] = connection
        } catch {
            // The process can watch no more descriptors; the client sees the connection end.
            count { $0.failedConnects += 1 }
        }
    }

    func remove(_ connection: FaultyConnection) { state.value.connections[connection.number] = nil }

    func cutAll(_ cut: FaultyLink.Cut) {
        for connection in Array(state.value.connections.values) { connection.cut(cut) }
    }

    func setSchedule(_ schedule: FaultSchedule) { state.value.schedule = schedule }

    func setStalled(_ isStalled: Bool) {
        state.value.isStalled = isStalled
        if !isStalled { for connection in Array(state.value.connections.values) { connection.pump() } }
    }

    /// Closes all connections. Returns the tasks to await for the release of all resources.
    func close() -> [Task<Void, Never>] {
        state.value.isClosed = true
        return Array(state.value.connections.values).compactMap { $0.close() }
    }
}
