import Glibc
import Networking
import Synchronization
import WebSockets

/// Many subscribers of one state, and one publisher that changes it at a rate: how long each update takes to each
/// subscriber, and how many versions were skipped.
///
/// `@unchecked Sendable`: its state is touched on the client's reactor alone; `deliveries` is atomic.
final class FanoutLoad: @unchecked Sendable {
    let deliveries = Atomic<Int>(0)
    private let rate: Double
    private var latency = Histogram()
    private var skipped = 0
    private var published = 0
    private var isCounting = false
    private var isPublishing = false
    private var sockets: [WebSocket] = []

    init(rate: Double) { self.rate = rate }

    func run(url: String, subscribers: Int, size: Int, seconds: Double) async throws -> BenchReport {
        let group = try ReactorGroup.clients()
        let reactor = group.reactors[0]
        for number in 0...subscribers {
            let socket = try await WebSocketClient.connect(
                to: url, subprotocols: ["trebuchet.v3"], reactors: group
            ) { _ in Subscriber(self) }
            await reactor.perform {
                self.sockets.append(socket)
                if number > 0 { socket.send(text: Self.subscribe) }
            }
        }
        let resize = Self.invocation("resize(_:)", "\(size)")
        await reactor.perform {
            self.sockets[0].send(text: resize)
            self.isPublishing = true
            self.publish(since: MonotonicClock.now, sent: 0)
        }
        try await Task.sleep(for: .seconds(0.5))
        await reactor.perform { self.isCounting = true }
        let start = MonotonicClock.now
        let before = deliveries.load(ordering: .relaxed)
        try await Progress.run(seconds: seconds) { self.deliveries.load(ordering: .relaxed) }
        let took = Double(MonotonicClock.now - start) / 1e9
        let count = deliveries.load(ordering: .relaxed) - before
        var report = BenchReport()
        report.add("subscribers", subscribers)
        report.add("state_bytes", size)
        report.add("updates_per_second", rate)
        report.add("seconds", took)
        report.add("deliveries_per_second", Double(count) / took)
        let (latency, skipped) = await reactor.perform { self.finish() }
        report.add("skipped", skipped)
        report.add(latency)
        return report
    }

    private static let subscribe =
        #"{"type":"invocation","payload":{"callID":"o","actorID":"board","targetIdentifier":"observeState"}}"#

    private static func invocation(_ target: String, _ argument: String) -> String {
        #"{"type":"invocation","payload":{"callID":"p","actorID":"board","targetIdentifier":"\#(target)","#
            + #""arguments":[\#(argument)]}}"#
    }

    /// Sends what is due by now, and comes back in a millisecond.
    private func publish(since start: UInt64, sent: Int) {
        guard isPublishing, let socket = sockets.first else { return }
        let due = Int(Double(MonotonicClock.now - start) / 1e9 * rate)
        var sent = sent
        while sent < due {
            socket.send(text: Self.invocation("publish(stamp:)", "\(MonotonicClock.now)"))
            sent += 1
        }
        socket.reactor.schedule(after: .milliseconds(1)) { self.publish(since: start, sent: sent) }
    }

    private func finish() -> (Histogram, Int) {
        isPublishing = false
        isCounting = false
        for socket in sockets { socket.abort() }
        sockets = []
        return (latency, skipped)
    }

    fileprivate func received(stamp: UInt64, skipping: Int) {
        deliveries.add(1, ordering: .relaxed)
        guard isCounting else { return }
        skipped += skipping
        if stamp > 0 { latency.add(MonotonicClock.now &- stamp) }
    }

    private final class Subscriber: WebSocketHandler {
        private let load: FanoutLoad
        private var sequence = 0

        init(_ load: FanoutLoad) { self.load = load }

        func webSocket(
            _ socket: WebSocket, didReceive message: UnsafeMutableRawBufferPointer, opcode: WebSocketOpcode
        ) {
            guard let number = Self.number(after: #""sequenceNumber":"#, message),
                // In a whole value, or in the difference from the one before.
                let stamp = Self.number(after: #""stamp":"#, message)
                    ?? Self.number(after: #""path":"/stamp","value":"#, message)
            else { return }
            load.received(stamp: UInt64(stamp), skipping: sequence == 0 ? 0 : number - sequence - 1)
            sequence = number
        }

        private static func number(after key: StaticString, _ message: UnsafeMutableRawBufferPointer) -> Int? {
            let count = key.utf8CodeUnitCount
            guard message.count > count else { return nil }
            let found = (0..<message.count - count).first { offset in
                message[offset] == key.utf8Start[0] && memcmp(message.baseAddress! + offset, key.utf8Start, count) == 0
            }
            guard var at = found.map({ $0 + count }) else { return nil }
            var value = 0
            while at < message.count, message[at] &- 0x30 < 10 {
                value = value * 10 + Int(message[at] - 0x30)
                at += 1
            }
            return value
        }
    }
}
