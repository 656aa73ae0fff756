import TestSupport
import Trebuchet

/// The methods of a client's actor that its server calls.
@Trebuchet
distributed actor InProcessClientActor {
    let name: String
    private let journal: Journal
    private var friends: [InProcessClientActor] = []
    @StreamedState var received: [String] = []

    init(_ name: String, journal: Journal = Journal(), actorSystem: TrebuchetActorSystem) {
        self.name = name
        self.journal = journal
        self.actorSystem = actorSystem
    }

    distributed func receive(_ text: String) -> Int {
        received.append(text)
        journal.record(text)
        return received.count
    }
    distributed func receiveLater(_ text: String) async -> Int {
        await Task.yield()
        return receive(text)
    }
    distributed func refuse() throws(BankError) { throw .insufficient(missing: 7) }
    distributed func explode() throws { throw Secret() }
    distributed func large(_ count: Int) -> String { String(repeating: "x", count: count) }
    /// Waits until it is cancelled.
    distributed func wait() async throws {
        journal.record("waits")
        await journal.wait(for: "nothing")
        journal.record("cancelled")
        try Task.checkCancellation()
    }
    distributed func callerIsServer() -> Bool { Caller.current?.isServer ?? false }
    distributed func friend() -> InProcessClientActor {
        let friend = InProcessClientActor("friend", journal: journal, actorSystem: actorSystem)
        friends.append(friend)
        return friend
    }
    @Idempotent distributed func once() -> Int { 1 }
}

/// A server actor that retains references to client actors, and calls them.
@Trebuchet
distributed actor InProcessReferenceHolder {
    private var clientActors: [InProcessClientActor] = []

    distributed func enter(_ clientActor: InProcessClientActor) -> String {
        clientActors.append(clientActor)
        return "\(clientActor.id)"
    }
    distributed func enterAll(_ clientActors: [InProcessClientActor]) { self.clientActors += clientActors }
    distributed func leaveAll() { clientActors = [] }
    distributed func areSame() -> Bool { clientActors.allSatisfy { $0 == clientActors[0] } }
    distributed func first() -> InProcessClientActor? { clientActors.first }
    distributed func tell(_ text: String) async throws -> [Int] {
        var counts: [Int] = []
        for clientActor in clientActors { counts.append(try await clientActor.receive(text)) }
        return counts
    }
    distributed func tellLater(_ text: String) async throws -> [Int] {
        var counts: [Int] = []
        for clientActor in clientActors { counts.append(try await clientActor.receiveLater(text)) }
        return counts
    }
    /// Returns the code and the text of the call's outcome.
    distributed func outcome(of call: String, milliseconds: Int = 60_000) async -> [String] {
        guard let clientActor = clientActors.last else { return ["nobody"] }
        do {
            return try await withDeadline(.milliseconds(milliseconds)) {
                switch call {
                case "receive": return ["\(try await clientActor.receive("x"))"]
                case "refuse": try await clientActor.refuse()
                case "explode": try await clientActor.explode()
                case "wait": try await clientActor.wait()
                case "once": return ["\(try await clientActor.once())"]
                case "isServer": return ["\(try await clientActor.callerIsServer())"]
                case "friend": return ["\(try await clientActor.friend().receive("friend"))"]
                case "observe":
                    for try await received in clientActor.observeReceived.throwing() { return received }
                default: return ["\(try await clientActor.large(Int(call) ?? 0).count)"]
                }
                return []
            }
        } catch let error as TrebuchetError {
            return ["\(error.code)", error.message]
        } catch {
            return ["\(type(of: error))", "\(error)"]
        }
    }
}
