import Networking
import Platform

/// A room in which one member publishes: what an event costs each of the others, and the server.
///
/// `@unchecked Sendable`: its state is touched on the clients' one reactor alone.
final class TopicLoad: @unchecked Sendable {
    private static let room = "rooms/bench-topics"
    private let rate: Double
    private let padding: String
    private var peers: [ServicePeer] = []
    private var publisher: ServicePeer?
    private var latency = Histogram()
    private var isCounting = false
    private var isSending = false
    private var sent = 0

    /// - Parameters:
    ///   - rate: events a second, at most 50 for one member.
    ///   - bytes: of each event.
    init(rate: Double, bytes: Int) {
        self.rate = rate
        padding = String(repeating: "x", count: max(0, bytes - 30))
    }

    func run(_ server: ChildServer, members: Int, seconds: Double, into report: inout BenchReport) async throws {
        let group = try ReactorGroup.clients()
        let reactor = group.reactors[0]
        for number in 0..<max(2, members) {
            let peer = try await ServicePeer.connect(to: server.url, group)
            _ = try await peer.call(Self.room, "join(presence:token:attempt:)", ["null", "null", "null"])
            await reactor.perform {
                guard number > 0 else { return self.publisher = peer }
                self.peers.append(peer)
                peer.didReceive = { self.received(UnsafeRawBufferPointer($0)) }
                peer.send(Self.room, "observeEvents")
            }
        }
        await reactor.perform {
            self.isSending = true
            self.send(since: MonotonicClock.now, sent: 0)
        }
        // As many events as a room remembers are no different from later ones; this is for the streams to begin.
        try await Task.sleep(for: .seconds(2))
        let before = try ServerProcess.processorTime(server.pid)
        await reactor.perform {
            for peer in self.peers { peer.beginCounting() }
            self.sent = 0
            self.isCounting = true
        }
        let start = MonotonicClock.now
        try await Progress.run(seconds: seconds) { 0 }
        let took = Double(MonotonicClock.now - start) / 1e9
        let worked = Double(try ServerProcess.processorTime(server.pid) - before) / 1e9
        let (bytes, messages, sent, latency) = await reactor.perform {
            self.isSending = false
            self.isCounting = false
            let counts = self.peers.map { ($0.streamBytes, $0.streamMessages) }
            return (counts.map(\.0), counts.map(\.1), self.sent, self.latency)
        }
        let deliveries = max(1, messages.reduce(0, +))
        report.add("topic_members", members)
        report.add("topic_events_per_second", Double(sent) / took)
        report.add("topic_bytes_per_event_member", Double(bytes.reduce(0, +)) / Double(deliveries))
        report.add("topic_deliveries_per_second", Double(deliveries) / took)
        report.add("topic_server_cores_percent", worked / took * 100)
        report.add("topic_server_us_per_delivery", worked * 1e6 / Double(deliveries))
        report.add("topic_p50_us", latency.microseconds(0.5))
        report.add("topic_p99_us", latency.microseconds(0.99))
        await reactor.perform {
            for peer in self.peers { peer.close() }
            self.publisher?.close()
            (self.peers, self.publisher) = ([], nil)
        }
    }

    private func send(since start: UInt64, sent done: Int) {
        guard isSending, let publisher else { return }
        let due = Int(Double(MonotonicClock.now - start) / 1e9 * rate)
        for _ in done..<max(done, due) {
            let event = #"{"at":\#(MonotonicClock.now / 1000),"x":"\#(padding)"}"#
            publisher.send(Self.room, "publish(topic:payload:)", [#""bench""#, event])
            sent += 1
        }
        publisher.perform(after: .milliseconds(1)) { self.send(since: start, sent: max(done, due)) }
    }

    private func received(_ message: UnsafeRawBufferPointer) {
        guard isCounting, let at = BenchText.number(after: #""at":"#, message), at > 0 else { return }
        latency.add(max(0, MonotonicClock.now &- UInt64(at) * 1000))
    }
}
