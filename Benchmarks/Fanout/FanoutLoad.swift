import Commands
import Networking
import Platform
import Synchronization
import WebSockets

/// Measures many subscribers of one state while a publisher changes it at a rate: the delay of each update at each subscriber,
/// and the number of skipped versions. Some subscribers may be stalled, and are reported separately.
///
/// `@unchecked Sendable`: its state is used on the client's reactor only; `deliveries` is atomic.
final class FanoutLoad: @unchecked Sendable {
    /// The name of the metric for the processor time of all servers.
    static let cost = "server_cpu_ns_per_delivery"

    let deliveries = Atomic<Int>(0)
    private let rate: Double
    private let actor: String
    private let target: String
    private var latency = Histogram()
    private var skipped = 0
    private var published = 0
    private var isCounting = false
    private var isPublishing = false
    private var lastStamp: UInt64 = 0
    private var sockets: [WebSocket] = []
    /// Subscribers that read nothing during the measurement.
    private var stalled: [WebSocket] = []
    /// The times until each stalled subscriber receives the last update.
    private var caughtUp = Histogram()
    private var stalledSkipped = 0
    private var resumedAt: UInt64?

    /// - Parameters:
    ///   - actor: a `Board`.
    ///   - target: its method that publishes.
    init(rate: Double, actor: String = "board", target: String) {
        self.rate = rate
        self.actor = actor
        self.target = target
    }

    /// - Parameters:
    ///   - servers: the servers that share the subscribers; the publisher is connected to the first.
    ///   - stalled: the number of subscribers that read nothing during the measurement.
    func run(
        _ servers: [MeasuredServer], subscribers: Int, stalled: Int = 0, size: Int, seconds: Double
    ) async throws -> BenchReport {
        let server = servers[0]
        let processes = servers.compactMap(\.process)
        let group = try ReactorGroup.clients()
        let reactor = group.reactors[0]
        for number in 0...subscribers {
            let socket = try await WebSocketClient.connect(
                to: servers[number % servers.count].url, subprotocols: [Invocation.subprotocol], reactors: group
            ) { _ in Subscriber(self, isStalled: (1...max(1, stalled)).contains(number) && stalled > 0) }
            await reactor.perform {
                self.sockets.append(socket)
                if number > 0 { socket.send(text: Invocation.text(self.actor, "observeState")) }
                if number > 0, number <= stalled { self.stalled.append(socket) }
            }
        }
        let resize = Invocation.text(actor, "resize(_:)", ["\(size)"])
        await reactor.perform {
            self.sockets[0].send(text: resize)
            self.isPublishing = true
            self.publish(since: MonotonicClock.now, sent: 0)
        }
        try await Task.sleep(for: .seconds(0.5))
        await reactor.perform {
            for socket in self.stalled { socket.pauseReading() }
            self.isCounting = true
        }
        let memoryBefore = try server.process?.residentBytes()
        let timeBefore = try processes.reduce(0) { try $0 + $1.processorTime() }
        let start = MonotonicClock.now
        let before = deliveries.load(ordering: .relaxed)
        try await Progress.run(seconds: seconds) { self.deliveries.load(ordering: .relaxed) }
        let duration = MonotonicClock.seconds(since: start)
        let count = deliveries.load(ordering: .relaxed) - before
        let time = try processes.reduce(0) { try $0 + $1.processorTime() } - timeBefore
        let memoryAfter = try server.process?.residentBytes()
        var report = BenchReport()
        report.add("subscribers", subscribers)
        report.add("state_bytes", size)
        report.add("updates_per_second", rate)
        report.add("seconds", duration)
        report.add("deliveries_per_second", Double(count) / duration)
        guard count > 0 || stalled == subscribers else {
            throw UsageError(
                "no change received from \(server.url)"
                    + (server.isOwned ? "" : ": start it with 'serve --bench'"))
        }
        let (latency, skipped) = await reactor.perform { self.stop() }
        report.add("skipped", skipped)
        report.add(latency)
        if stalled > 0 {
            let caughtUp = try await catchUp(reactor)
            report.add("stalled", stalled)
            report.add("stalled_skipped", await reactor.perform { self.stalledSkipped })
            report.add("stalled_with_newest", caughtUp.count)
            report.add("stalled_newest_after_us", caughtUp.microseconds(1))
        }
        if processes.count == servers.count { report.add(Self.cost, Double(time) / Double(max(1, count))) }
        if let memoryBefore, let memoryAfter {
            report.add("server_bytes_begin", memoryBefore)
            report.add("server_bytes_end", memoryAfter)
        }
        await reactor.perform {
            for socket in self.sockets { socket.abort() }
            self.sockets = []
            self.stalled = []
        }
        return report
    }

    /// Sends the updates that are due, and repeats after a millisecond.
    private func publish(since start: UInt64, sent: Int) {
        guard isPublishing, let socket = sockets.first else { return }
        let due = Int(MonotonicClock.seconds(since: start) * rate)
        var sent = sent
        while sent < due {
            lastStamp = MonotonicClock.now
            socket.send(text: Invocation.text(actor, target, ["\(lastStamp)"], id: "p\(sent)"))
            sent += 1
        }
        socket.reactor.schedule(after: .milliseconds(1)) { self.publish(since: start, sent: sent) }
    }

    private func stop() -> (Histogram, Int) {
        isPublishing = false
        isCounting = false
        return (latency, skipped)
    }

    /// Resumes the stalled subscribers until they have received the last update, for at most 10 seconds.
    private func catchUp(_ reactor: Reactor) async throws -> Histogram {
        await reactor.perform {
            self.resumedAt = MonotonicClock.now
            for socket in self.stalled { socket.resumeReading() }
        }
        for _ in 0..<1000 {
            let isDone = await reactor.perform { self.caughtUp.count == self.stalled.count }
            if isDone { break }
            try await Task.sleep(for: .milliseconds(10))
        }
        return await reactor.perform { self.caughtUp }
    }

    /// Records an update of a stalled subscriber; returns true for the last one.
    fileprivate func stalledReceived(stamp: UInt64, skipping: Int) -> Bool {
        stalledSkipped += skipping
        guard let resumedAt, stamp == lastStamp else { return false }
        caughtUp.add(MonotonicClock.now &- resumedAt)
        return true
    }

    fileprivate func received(stamp: UInt64, skipping: Int) {
        deliveries.add(1, ordering: .relaxed)
        guard isCounting else { return }
        skipped += skipping
        if stamp > 0 { latency.add(MonotonicClock.now &- stamp) }
    }

    /// One subscriber.
    private final class Subscriber: WebSocketHandler {
        private let load: FanoutLoad
        private let isStalled: Bool
        private var sequence = 0
        private var hasNewest = false

        init(_ load: FanoutLoad, isStalled: Bool) {
            self.load = load
            self.isStalled = isStalled
        }

        func webSocket(
            _ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode
        ) {
            let text = UnsafeRawBufferPointer(message)
            guard let number = text.number(after: #""sequenceNumber":"#),
                // Part of a snapshot or of a delta.
                let stamp = text.number(after: #""stamp":"#) ?? text.number(after: #""path":"/stamp","value":"#)
            else { return }
            let skipping = sequence == 0 ? 0 : number - sequence - 1
            sequence = number
            if isStalled {
                if !hasNewest { hasNewest = load.stalledReceived(stamp: UInt64(stamp), skipping: skipping) }
                return
            }
            load.received(stamp: UInt64(stamp), skipping: skipping)
        }
    }
}
