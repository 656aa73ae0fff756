import Platform
import SharedState
import Trebuchet
import TrebuchetServices

/// One member of the room: it publishes events, and notes all that it is shown.
@MainActor
final class RoomMember {
    /// As the client's for a room: the owner of the room may be unreachable.
    private static let backoff = Backoff(first: .milliseconds(100), limit: .seconds(10))

    private let number: Int
    private let strictness: Strictness
    private let backend: TrebuchetBackend
    private let store = SharedStore()
    private let presence: Shared<RoomPresence<ConsistencyPresence>>
    private let talk: Shared<TopicChannel<String>>

    init(_ number: Int, _ client: TrebuchetClient, _ strictness: Strictness) {
        (self.number, self.strictness) = (number, strictness)
        let backend = TrebuchetBackend(client: client)
        self.backend = backend
        let store = store
        let data = ConsistencyPresence(name: "\(number)", room: Writing.room)
        (presence, talk) = backend.withCurrent {
            (
                Shared(
                    .trebuchetPresence(
                        roomType: Writing.roomType, roomId: Writing.room, initialPresence: data), store: store),
                Shared(
                    .trebuchetTopic(roomType: Writing.roomType, topic: Writing.topic, roomId: Writing.room),
                    store: store)
            )
        }
        talk.withLock { $0.maxEvents = .max }
    }

    func join() async {
        for await value in presence.updates where value.isConnected { break }
        for await value in talk.updates where value.isConnected { break }
    }

    func run(until isOver: @Sendable () -> Bool) async {
        for event in 1...Writing.mostEvents where !isOver() {
            await publish(event)
            try? await Task.sleep(for: .milliseconds(400))
        }
    }

    /// The last thing that it does: until it is acknowledged.
    func finish() async {
        var (event, failures) = (10_001, 0)
        while await !publish(event) {
            event += 1
            failures += 1
            try? await Task.sleep(for: Self.backoff.delay(afterFailures: failures))
        }
        Output.printLine("last \(number) \(event)")
        defer { ClientProgress.writers.set("member \(number)", nil) }
        failures = 0
        while true {
            ClientProgress.writers.set("member \(number)", "updates its presence")
            do { return try await presence.update { $0.mood = "done" } } catch {
                ClientProgress.writers.set("member \(number)", "updates its presence again after \(error)")
                failures += 1
                try? await Task.sleep(for: Self.backoff.delay(afterFailures: failures))
            }
        }
    }

    @discardableResult
    private func publish(_ event: Int) async -> Bool {
        let label = "\(Label("\(number)", Writing.room, event))"
        ClientProgress.writers.set("member \(number)", "publishes \(label)")
        do {
            try await talk.publish(label)
            ClientProgress.writers.set("member \(number)", nil)
            Output.printLine("published \(label)")
            return true
        } catch {
            ClientProgress.writers.set("member \(number)", "could not publish \(label): \(error)")
            let isUnknown = (error as? TrebuchetError).map { [.unknownOutcome, .timeout].contains($0.code) } ?? false
            if strictness == .ordered { Output.finding("member \(number): publishing \(label) ended with \(error)") }
            Output.printLine("\(isUnknown ? "uncertain" : "unpublished") \(label)")
            return false
        }
    }

    /// The events and presences received so far.
    var report: MemberReport {
        let (talk, presence) = (talk.wrappedValue, presence.wrappedValue)
        return MemberReport(
            name: "\(number)", events: talk.events.map(\.data), peers: presence.peers.map(\.data),
            error: talk.error.map { "\($0)" }, missed: talk.missedCount, restarts: talk.restarts)
    }
}

/// The observations of a room member.
struct MemberReport: Codable, Sendable {
    var name: String
    var events: [String]
    var peers: [ConsistencyPresence]
    /// The error of its topic.
    var error: String?
    /// The events that it was told it had missed, and how often the room was created again while it was away.
    var missed: Int
    var restarts: Int
}
