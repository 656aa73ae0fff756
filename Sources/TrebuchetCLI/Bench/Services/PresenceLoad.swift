import Networking
import Platform

/// A room in which members change what they show, at a rate in all: what each member receives, how soon, and what that costs the
/// server.
///
/// `@unchecked Sendable`: its state is touched on the clients' one reactor alone.
final class PresenceLoad: @unchecked Sendable {
    private static let room = "rooms/bench-presence"
    private let rate: Double
    private let padding: String
    private var peers: [ServicePeer] = []
    private var latency = Histogram()
    private var isCounting = false
    private var isSending = false
    private var sent = 0

    /// - Parameters:
    ///   - rate: patches a second of all members together.
    ///   - bytes: of each patch.
    init(rate: Double, bytes: Int) {
        self.rate = rate
        // {"at":1234567890123456,"x":"…"}
        padding = String(repeating: "x", count: max(0, bytes - 30))
    }

    func run(_ server: ChildServer, members: Int, seconds: Double, into report: inout BenchReport) async throws {
        let group = try ReactorGroup.clients()
        let reactor = group.reactors[0]
        for number in 0..<members {
            let peer = try await ServicePeer.connect(to: server.url, group)
            let presence = #"{"name":"member \#(number)","at":0,"x":""}"#
            _ = try await peer.call(Self.room, "join(presence:token:attempt:)", [presence, "null", "null"])
            await reactor.perform {
                self.peers.append(peer)
                peer.didReceive = { self.received(UnsafeRawBufferPointer($0)) }
                peer.send(Self.room, "observeRoster")
            }
        }
        await reactor.perform {
            self.isSending = true
            self.send(since: MonotonicClock.now, sent: 0)
        }
        // Joins that are still on their way are no part of it.
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
        report.add("presence_members", members)
        report.add("presence_patches_per_second", Double(sent) / took)
        report.add("presence_bytes_per_second_member", Double(bytes.reduce(0, +)) / Double(members) / took)
        report.add("presence_messages_per_second_member", Double(messages.reduce(0, +)) / Double(members) / took)
        report.add("presence_server_cores_percent", worked / took * 100)
        report.add("presence_p50_us", latency.microseconds(0.5))
        report.add("presence_p99_us", latency.microseconds(0.99))
        await reactor.perform {
            for peer in self.peers { peer.close() }
            self.peers = []
        }
    }

    private func send(since start: UInt64, sent done: Int) {
        guard isSending, !peers.isEmpty else { return }
        let due = Int(Double(MonotonicClock.now - start) / 1e9 * rate)
        for number in done..<max(done, due) {
            let patch = #"{"at":\#(MonotonicClock.now / 1000),"x":"\#(padding)"}"#
            peers[number % peers.count].send(Self.room, "patchPresence(_:)", [patch])
            sent += 1
        }
        peers[0].perform(after: .milliseconds(1)) { self.send(since: start, sent: max(done, due)) }
    }

    private func received(_ message: UnsafeRawBufferPointer) {
        guard isCounting, let at = BenchText.number(after: #"/data/at","value":"#, message), at > 0 else { return }
        latency.add(max(0, MonotonicClock.now &- UInt64(at) * 1000))
    }
}
