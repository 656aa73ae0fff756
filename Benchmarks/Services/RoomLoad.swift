import Networking
import Platform

/// Measures a room whose members send at a total rate: the traffic to the other members, its delay, and the cost for the
/// server.
///
/// `@unchecked Sendable`: its state is used on the clients' one reactor only.
final class RoomLoad: @unchecked Sendable {
    /// The kinds of messages.
    enum Kind {
        /// All members change their presence, and receive that of all others.
        case presence
        /// One member publishes, and the others receive the events.
        case topic
    }

    /// The result of a measurement.
    struct Outcome: Sendable {
        var seconds: Double
        var sent: Int
        var messages: Int
        var bytes: Int
        var latency: Histogram
        /// The processor time of the server in seconds.
        var worked: Double
    }

    private let kind: Kind
    private let room: String
    private let rate: Double
    private let padding: String
    private var senders: [ServicePeer] = []
    private var listeners: [ServicePeer] = []
    private var latency = Histogram()
    private var isCounting = false
    private var isSending = false
    private var sent = 0

    /// - Parameters:
    ///   - rate: the messages per second of all members together; one member may publish 50.
    ///   - bytes: the size of each message.
    init(_ kind: Kind, rate: Double, bytes: Int) {
        self.kind = kind
        self.rate = rate
        room = "rooms/bench-\(kind)"
        // The message is {"at":1234567890123456,"x":"…"}.
        padding = String(repeating: "x", count: max(0, bytes - 30))
    }

    @discardableResult
    func run(
        _ server: MeasuredServer, members: Int, seconds: Double, into report: inout BenchReport
    ) async throws -> Outcome {
        let reactors = try ReactorGroup.clients()
        for number in 0..<members {
            try await join(number, at: server, reactors)
        }
        let outcome = try await measured(try server.knownProcess(), seconds, reactors.reactors[0])
        switch kind {
        case .presence: addPresence(outcome, members, to: &report)
        case .topic: addTopic(outcome, members, to: &report)
        }
        await reactors.reactors[0].perform {
            for peer in self.senders + self.listeners { peer.close() }
            (self.senders, self.listeners) = ([], [])
        }
        return outcome
    }

    private func addPresence(_ outcome: Outcome, _ members: Int, to report: inout BenchReport) {
        let each = Double(members) * outcome.seconds
        report.add("presence_members", members)
        report.add("presence_patches_per_second", Double(outcome.sent) / outcome.seconds)
        report.add("presence_bytes_per_second_member", Double(outcome.bytes) / each)
        report.add("presence_messages_per_second_member", Double(outcome.messages) / each)
        report.add("presence_server_cores_percent", outcome.worked / outcome.seconds * 100)
        report.add("presence_p50_us", outcome.latency.microseconds(0.5))
        report.add("presence_p99_us", outcome.latency.microseconds(0.99))
    }

    private func addTopic(_ outcome: Outcome, _ members: Int, to report: inout BenchReport) {
        let deliveries = Double(max(1, outcome.messages))
        report.add("topic_members", members)
        report.add("topic_events_per_second", Double(outcome.sent) / outcome.seconds)
        report.add("topic_bytes_per_event_member", Double(outcome.bytes) / deliveries)
        report.add("topic_deliveries_per_second", deliveries / outcome.seconds)
        report.add("topic_server_cores_percent", outcome.worked / outcome.seconds * 100)
        report.add("topic_server_us_per_delivery", outcome.worked * 1e6 / deliveries)
        report.add("topic_p50_us", outcome.latency.microseconds(0.5))
        report.add("topic_p99_us", outcome.latency.microseconds(0.99))
    }

    private func join(_ number: Int, at server: MeasuredServer, _ reactors: ReactorGroup) async throws {
        let peer = try await ServicePeer.connect(to: server.url, reactors)
        let presence = kind == .presence ? #"{"name":"member \#(number)","at":0,"x":""}"# : "null"
        _ = try await peer.call(room, "join(presence:token:attempt:)", [presence, "null", "null"])
        await reactors.reactors[0].perform {
            if self.kind == .presence || number == 0 { self.senders.append(peer) }
            guard self.kind == .presence || number > 0 else { return }
            self.listeners.append(peer)
            peer.didReceive = { self.received(UnsafeRawBufferPointer($0)) }
            peer.send(self.room, self.kind == .presence ? "observeRoster" : "observeEvents")
        }
    }

    private func measured(_ process: ServerProcess, _ seconds: Double, _ reactor: Reactor) async throws -> Outcome {
        await reactor.perform {
            self.isSending = true
            self.send(since: MonotonicClock.now, sent: 0)
        }
        // Exclude joins and beginnings of streams that are still in transit.
        try await Task.sleep(for: .seconds(2))
        let before = try process.processorTime()
        await reactor.perform {
            for peer in self.listeners { peer.beginCounting() }
            self.sent = 0
            self.isCounting = true
        }
        let start = MonotonicClock.now
        try await Progress.run(seconds: seconds) { 0 }
        let duration = MonotonicClock.seconds(since: start)
        let worked = Double(try process.processorTime() - before) / 1e9
        return await reactor.perform {
            (self.isSending, self.isCounting) = (false, false)
            return Outcome(
                seconds: duration, sent: self.sent, messages: self.listeners.map(\.streamMessages).reduce(0, +),
                bytes: self.listeners.map(\.streamBytes).reduce(0, +), latency: self.latency, worked: worked)
        }
    }

    private func send(since start: UInt64, sent done: Int) {
        guard isSending, !senders.isEmpty else { return }
        let due = max(done, Int(MonotonicClock.seconds(since: start) * rate))
        for number in done..<due {
            let message = #"{"at":\#(MonotonicClock.now / 1000),"x":"\#(padding)"}"#
            let sender = senders[number % senders.count]
            switch kind {
            case .presence: sender.send(room, "patchPresence(_:)", [message])
            case .topic: sender.send(room, "publish(topic:payload:)", [#""bench""#, message])
            }
            sent += 1
        }
        senders[0].perform(after: .milliseconds(1)) { self.send(since: start, sent: due) }
    }

    private func received(_ message: UnsafeRawBufferPointer) {
        let key: StaticString = kind == .presence ? #"/data/at","value":"# : #""at":"#
        guard isCounting, let at = message.number(after: key), at > 0 else { return }
        latency.add(max(0, MonotonicClock.now &- UInt64(at) * 1000))
    }
}
